"""What Kafka's clients are told."""

from __future__ import annotations

from pathlib import Path

from catalog.settings import KafkaAccount, KafkaSettings
from secfilter.kafka_options import KafkaOptions, kafka_options


def test_no_record_overtakes_one_that_was_given_up() -> None:
    """Ingest leaves out what is no newer than the newest record in lab."""
    sink = KafkaOptions({}).sink("client")
    assert sink["kafka.enable.idempotence"] == "true"
    assert sink["kafka.max.in.flight.requests.per.connection"] == "1"
    assert int(sink["kafka.delivery.timeout.ms"]) == 2**31 - 1, "none is given up"
    assert "kafka.retries" not in sink, "as often as the time allows, which is Kafka's default"
    assert int(sink["kafka.max.block.ms"]) <= 10_000, "a query with nowhere to send says so soon"


def test_an_engine_leaves_a_broker_that_hangs(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    account = KafkaAccount("engine", file)
    settings = KafkaSettings("localhost:1", file, account, account, account, account)
    options = kafka_options(settings, account, tmp_path / "secrets")
    # A stream may call late what is older than a minute.
    for each in (options.source(["lab.s1"]), options.sink("client")):
        assert int(each["kafka.request.timeout.ms"]) <= 10_000
