"""Where topics begin, and what the newest records of lab topics came from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from catalog.errors import Unavailable
from catalog.topics import lab_topic
from secfilter.kafka_options import EARLIEST, GROUP_PREFIX, Offsets

_TIMEOUT_S = 10.0
# How many records from a partition's end are looked at for an origin.
_TAIL = 16
# No group is used, and the account needs no right to one; the client asks for it all the same.
_NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED
_NO_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


class Positions:
    """Looks at topics with the platform's account. `config` is a librdkafka configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = {
            **config,
            "group.id": f"{GROUP_PREFIX}-positions",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 0,
        }

    def starting(self, topics: Sequence[str], known: Offsets) -> Offsets:
        """For every partition of `topics` the offset in `known`, or else the earliest.

        An offset that retention has passed becomes the earliest too. Raises Unavailable where Kafka
        cannot be asked, or a topic is not there (yet).
        """
        with self._consumer() as consumer:
            return {
                topic: {
                    str(partition): _start(consumer, topic, partition, known)
                    for partition in _partitions(consumer, topic)
                }
                for topic in topics
            }

    def lost(self, known: Offsets) -> int:
        """How many records from the offsets in `known` on are no longer there to be read.

        Raises Unavailable where Kafka cannot be asked, or a topic is not there.
        """
        with self._consumer() as consumer:
            return sum(
                max(0, _begin(consumer, topic, int(partition)) - offset)
                for topic, partitions in known.items()
                for partition, offset in partitions.items()
                if offset >= 0
            )

    def partitions(self) -> dict[str, int]:
        """The number of partitions of each topic that there is. Raises Unavailable."""
        with self._consumer() as consumer:
            found = consumer.list_topics(timeout=_TIMEOUT_S).topics
        if any(topic.error not in {None, _NO_TOPIC} for topic in found.values()):
            raise Unavailable("Kafka does not know yet which topics there are")
        return {name: len(t.partitions) for name, t in found.items() if t.error is None}

    def ends(self, topic: str) -> dict[int, int]:
        """The offset that the next record of each partition will get. Raises Unavailable."""
        with self._consumer() as consumer:
            return {p: _end(consumer, topic, p) for p in _partitions(consumer, topic)}

    def newest_origins(self, streams: Iterable[str]) -> dict[str, dict[int, int]]:
        """stream -> in partition -> the newest in offset that lab.<stream> holds.

        Raises Unavailable where that cannot be said: to write without knowing could repeat tuples.
        """
        with self._consumer() as consumer:
            return {stream: _newest(consumer, lab_topic(stream)) for stream in streams}

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        consumer = Consumer(self._config)
        try:
            yield consumer
        except KafkaException as error:
            raise Unavailable(f"Kafka did not answer: {error.args[0].name()}") from None
        finally:
            consumer.close()


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
    if found.error is not None or not found.partitions:
        raise Unavailable(f"the topic {topic} is not there or may not be read")
    return sorted(found.partitions)


def _start(consumer: Consumer, topic: str, partition: int, known: Offsets) -> int:
    offset = known.get(topic, {}).get(str(partition), EARLIEST)
    if offset < 0:
        return EARLIEST
    return EARLIEST if offset < _begin(consumer, topic, partition) else offset


def _begin(consumer: Consumer, topic: str, partition: int) -> int:
    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_TIMEOUT_S)
    return int(low)


def _end(consumer: Consumer, topic: str, partition: int) -> int:
    _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_TIMEOUT_S)
    return int(high)


def _newest(consumer: Consumer, topic: str) -> dict[int, int]:
    found = {}
    for partition in _partitions(consumer, topic):
        place = TopicPartition(topic, partition)
        low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
        origin = _newest_in(consumer, place, low, high)
        if origin is not None:
            found[partition] = origin
    return found


def _newest_in(consumer: Consumer, place: TopicPartition, low: int, high: int) -> int | None:
    """The newest origin of a partition, None of an empty one."""
    end = high
    while end > low:
        begin = max(low, end - _TAIL)
        origins = [
            origin
            for message in _records(consumer, place, begin, end)
            if (origin := _origin(message, place.partition)) is not None
        ]
        if origins:
            return max(origins)
        end = begin
    return None


def _records(consumer: Consumer, place: TopicPartition, begin: int, end: int) -> Iterator[Message]:
    """The records from `begin` up to `end`, or as many as are still there."""
    consumer.assign([TopicPartition(place.topic, place.partition, begin)])
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if (error := message.error()) is not None:
                if error.code() == _NO_GROUP:
                    continue
                raise KafkaException(error)
            yield message
            offset = message.offset()
            if offset is None or offset >= end - 1:
                return
        raise Unavailable(f"the end of {place.topic} could not be read in time")
    finally:
        consumer.unassign()


def _origin(message: Message, partition: int) -> int | None:
    """The in offset in the record's key, if the record came from that in partition."""
    key = message.key()
    if not isinstance(key, bytes):
        return None
    source, _, offset = key.decode("ascii", "replace").partition(":")
    return int(offset) if source == str(partition) and offset.isdecimal() else None
