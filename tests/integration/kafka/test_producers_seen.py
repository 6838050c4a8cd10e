"""What a subscriber learns about the writers of its topic: Kafka tells all who may read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import TopicPartition

from secadmin.kafka.principals import Credentials
from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, int32
from tests.integration.kafka.clients import DENIED_TOPIC, reader, secadmin_producer, write
from tests.integration.kafka.conftest import Parts
from tests.integration.service.revocations.raw_fetch import connect

_DESCRIBE_PRODUCERS, _VERSION = 61, 0
_NO_TAGS = int8(0)


@dataclass(frozen=True, slots=True)
class SeenProducer:
    """All that the broker says of a producer."""

    id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start: int


def test_it_learns_nothing_of_what_goes_into_other_topics(parts: Parts, tmp_path: Path) -> None:
    mine, others = parts.new_topic(), parts.new_topic()
    me, other = parts.new_reader(mine), parts.new_reader(others)
    writer = secadmin_producer(parts.settings)
    write(writer, others, ["hidden"] * 3)
    write(writer, mine, ["1", "2"])
    before = describe_producers(parts, me, mine, tmp_path)
    write(writer, others, ["hidden"] * 5)
    error, (seen,) = describe_producers(parts, me, mine, tmp_path)
    assert (error, [seen]) == before, "nothing that was written elsewhere shows"
    assert seen.last_sequence == 1, "it counts the records of this partition"
    assert seen.last_timestamp_ms == _time_of_last(parts, me, mine)
    assert (seen.coordinator_epoch, seen.transaction_start) == (-1, -1)
    assert describe_producers(parts, me, others, tmp_path) == (DENIED_TOPIC, [])
    _, (at_the_other,) = describe_producers(parts, other, others, tmp_path)
    # This much two who compare do learn, as README says: one writer serves both.
    assert (at_the_other.id, at_the_other.epoch) == (seen.id, seen.epoch)


def test_a_sender_learns_nothing_of_other_senders_producers(parts: Parts, tmp_path: Path) -> None:
    """It may not read, so it may not ask."""
    topic = parts.new_topic("in.")
    write(secadmin_producer(parts.settings), topic, ["of another"])
    error, seen = describe_producers(parts, parts.new_writer(topic), topic, tmp_path)
    assert (error, seen) == (DENIED_TOPIC, [])


def _time_of_last(parts: Parts, credentials: Credentials, topic: str) -> int:
    with reader(parts.settings, credentials) as own:
        own.consumer.assign([TopicPartition(topic, 0, 1)])
        message = own.consumer.poll(60)
        assert message is not None
        assert message.error() is None
        return int(message.timestamp()[1])


def describe_producers(
    parts: Parts, credentials: Credentials, topic: str, folder: Path
) -> tuple[int, list[SeenProducer]]:
    """The error, and what the broker tells that principal of the producers of partition 0."""
    connection = connect(parts.settings, credentials, folder)
    try:
        return _read(_ask(connection, topic))
    finally:
        connection.close()


def _ask(connection: BrokerConnection, topic: str) -> Reader:
    # The flexible encoding, which writes lengths one higher, in a byte while they are short.
    name = int8(len(topic) + 1) + topic.encode()
    partitions = int8(2) + int32(0)
    body = _NO_TAGS + int8(2) + name + partitions + _NO_TAGS + _NO_TAGS
    return connection.request(_DESCRIBE_PRODUCERS, _VERSION, body)


def _read(answer: Reader) -> tuple[int, list[SeenProducer]]:
    answer.int8(), answer.int32()
    assert answer.int8() - 1 == 1
    _skip_text(answer)
    assert (answer.int8() - 1, answer.int32()) == (1, 0)
    error = answer.int16()
    _skip_text(answer)
    seen: list[SeenProducer] = []
    for _ in range(answer.int8() - 1):
        seen.append(
            SeenProducer(
                answer.int64(),
                answer.int32(),
                answer.int32(),
                answer.int64(),
                answer.int32(),
                answer.int64(),
            )
        )
        answer.int8()
    return error, seen


def _skip_text(answer: Reader) -> None:
    """Over a text, or none."""
    for _ in range(answer.int8() - 1):
        answer.int8()
