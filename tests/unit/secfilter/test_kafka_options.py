"""What Kafka's clients are told."""

from __future__ import annotations

from secfilter.kafka_options import KafkaOptions


def test_no_record_overtakes_one_that_was_given_up() -> None:
    """Ingest leaves out what is no newer than the newest record in lab."""
    sink = KafkaOptions({}).sink("client")
    assert sink["kafka.enable.idempotence"] == "true"
    assert sink["kafka.max.in.flight.requests.per.connection"] == "1"
    assert int(sink["kafka.delivery.timeout.ms"]) == 2**31 - 1, "none is given up"
    assert "kafka.retries" not in sink, "as often as the time allows, which is Kafka's default"
    assert int(sink["kafka.max.block.ms"]) <= 10_000, "a query with nowhere to send says so soon"
