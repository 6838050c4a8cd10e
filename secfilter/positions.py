"""Reads offsets of topics, and the origins of the newest records of lab topics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from catalog.errors import Unavailable
from catalog.origin import Origin, origin_of
from catalog.topics import lab_topic
from secfilter.kafka_options import EARLIEST, GROUP_PREFIX, Offsets

_TIMEOUT_S = 10.0
_AT_ONCE = 1_000
# The client needs the name of a group, but no group is used and no permission is needed.
_NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED
_UNCOMMITTED = {"isolation.level": "read_uncommitted"}
_NO_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


class Positions:
    """Looks at topics with an engine's account. `config` is a librdkafka configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = {
            **config,
            "group.id": f"{GROUP_PREFIX}-positions",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 0,
        }

    def starting(self, topics: Sequence[str], known: Offsets) -> Offsets:
        """For each partition of `topics`, the offset in `known`, or else the earliest one.

        If retention has deleted the record at an offset, the earliest one is used too. Raises
        Unavailable if Kafka cannot be reached, or a topic does not exist (yet).
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
        """The number of records after the offsets in `known` that are already deleted.

        Raises Unavailable if Kafka cannot be reached, or a topic does not exist.
        """
        with self._consumer() as consumer:
            return sum(
                max(0, _begin(consumer, topic, int(partition)) - offset)
                for topic, partitions in known.items()
                for partition, offset in partitions.items()
                if offset >= 0
            )

    def partitions(self) -> dict[str, int]:
        """The number of partitions of each existing topic. Raises Unavailable."""
        with self._consumer() as consumer:
            found = consumer.list_topics(timeout=_TIMEOUT_S).topics
        if any(topic.error not in {None, _NO_TOPIC} for topic in found.values()):
            raise Unavailable("Kafka does not know yet which topics there are")
        return {name: len(t.partitions) for name, t in found.items() if t.error is None}

    def ends(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The offset that the next record of each partition will get, by topic.

        If a transaction is open, it is the offset of the transaction. Raises Unavailable.
        """
        with self._consumer() as consumer:
            return {topic: _ends(consumer, topic) for topic in topics}

    def raw_ends(self, topic: str) -> dict[int, int]:
        """As `ends` of the topic, but after all open transactions. Raises Unavailable."""
        with self._consumer(**_UNCOMMITTED) as consumer:
            return _ends(consumer, topic)

    def next_tuples(self, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """partition -> the offset of the next committed record at or after the offset in `offsets`.

        If there is none, it is the end, or the first record of an open transaction. Raises
        Unavailable.
        """
        with self._consumer(**{"enable.partition.eof": True}) as consumer:
            return {
                partition: _next(consumer, TopicPartition(topic, partition, offset))
                for partition, offset in offsets.items()
            }

    def newest_origins(
        self, streams: Iterable[str], since: Offsets | None = None
    ) -> dict[int, dict[int, int]]:
        """Id of a sender -> partition -> the newest offset of its records in lab.<stream>.

        Lab topics are read from the offsets in `since`, or else from their beginnings. Raises
        Unavailable if the answer is unknown, because ingest could then repeat tuples.
        """
        found: dict[int, dict[int, int]] = {}
        with self._consumer() as consumer:
            for stream in streams:
                topic = lab_topic(stream)
                for origin in _origins(consumer, topic, (since or {}).get(topic, {})):
                    of_sender = found.setdefault(origin.sender, {})
                    of_sender[origin.partition] = max(
                        origin.offset, of_sender.get(origin.partition, origin.offset)
                    )
        return found

    @contextmanager
    def _consumer(self, **more: object) -> Iterator[Consumer]:
        consumer = Consumer({**self._config, **more})
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


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    return {p: _end(consumer, topic, p) for p in _partitions(consumer, topic)}


def _next(consumer: Consumer, place: TopicPartition) -> int:
    """The offset of the next committed record, or of the end."""
    consumer.assign([place])
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            offset = None if message is None else message.offset()
            if message is None or offset is None:
                continue
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                return offset
            if error.code() != _NO_GROUP:
                raise KafkaException(error)
        raise Unavailable(f"the topic {place.topic} could not be read in time")
    finally:
        consumer.unassign()


def _origins(consumer: Consumer, topic: str, since: Mapping[str, int]) -> Iterator[Origin]:
    for partition in _partitions(consumer, topic):
        place = TopicPartition(topic, partition)
        low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
        noted = since.get(str(partition), low)
        # If a topic ends before the noted offset, it was deleted and made again.
        begin = max(low, noted) if noted <= high else low
        for message in _records(consumer, place, begin, high):
            origin = origin_of(message.key())
            # Records of an in partition go to the lab partition with the same number.
            if origin is not None and origin.partition == partition:
                yield origin


def _records(consumer: Consumer, place: TopicPartition, begin: int, end: int) -> Iterator[Message]:
    """The records from `begin` up to `end`, as far as they still exist."""
    if begin >= end:
        return
    consumer.assign([TopicPartition(place.topic, place.partition, begin)])
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(_AT_ONCE, 0.1):
                if (error := message.error()) is not None:
                    if error.code() == _NO_GROUP:
                        continue
                    raise KafkaException(error)
                yield message
                deadline = time.monotonic() + _TIMEOUT_S
                offset = message.offset()
                if offset is None or offset >= end - 1:
                    return
        raise Unavailable(f"the end of {place.topic} could not be read in time")
    finally:
        consumer.unassign()
