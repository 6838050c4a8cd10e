"""A record that is small on the wire and large behind it: refused, and never in the others' way."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from catalog.runs import IngestRun
from catalog.topics import lab_topic, quarantine_topic
from tests.integration.secfilter.plane import Plane, headers, tuple_at

_LARGE = b"x" * 10_000_000


def sent(plane: Plane, topic: str, *values: bytes) -> Sequence[KafkaError | None]:
    """What the broker says of each record, compressed and in a batch of its own."""
    packed = {"compression.type": "gzip", "message.max.bytes": 20_000_000}
    producer = Producer({**plane.broker.admin_config(), **packed})
    said: list[KafkaError | None] = []

    def told(error: KafkaError | None, _: Message) -> None:
        said.append(error)

    for value in values:
        producer.produce(topic, value, key=b"k", on_delivery=told)
        assert producer.flush(30) == 0
    return said


def test_what_unfolds_to_more_than_the_limit_is_not_taken(plane: Plane) -> None:
    topic = plane.stream(0).senders[0].topic
    refused, taken = sent(plane, topic, _LARGE, b"x" * 900_000)
    assert refused is not None and refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert taken is None


def test_what_no_topic_takes_is_quarantined_by_its_size(plane: Plane) -> None:
    stream = plane.stream(0)
    name = stream.relation.name
    as_it_comes = ConfigEntry(
        "compression.type", "producer", incremental_operation=AlterConfigOpType.SET
    )
    topic = ConfigResource(ResourceType.TOPIC, f"in.{name}", incremental_configs=[as_it_comes])
    for future in plane.admin.incremental_alter_configs([topic]).values():
        future.result()
    assert sent(plane, f"in.{name}", _LARGE) == [None]
    plane.start(IngestRun("ingest-1", (stream,)))
    plane.send(stream, tuple_at(1))
    assert len(plane.read(lab_topic(name), 1)) == 1
    (message,) = plane.read(quarantine_topic(name), 1)
    assert (message.key(), message.value()) == (None, None)
    told = dict(headers(message))
    assert (told["offset"], told["size"]) == ("0", str(len(_LARGE) + 1))
    assert told["reason"].startswith("larger than the stream allows: ")
