"""Reads offsets of topics, and the origins of the newest records of lab topics."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from catalog.errors import Unavailable
from catalog.origin import Origin, origin_of
from catalog.topics import lab_topic
from secfilter.kafka_options import EARLIEST, GROUP_PREFIX, Offsets

_TIMEOUT_S = 10.0
_AT_ONCE = 1_000
# The client needs the name of a group, but no group is used and no permission is needed.
_NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED
_NO_LEADER = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}
_PAUSE_S = 0.2
_NO_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_KEPT: Mapping[str, Any] = {
    "log_level": 0,
    # A connection to a broker that hangs is given up after this time.
    "socket.timeout.ms": int(_TIMEOUT_S * 1000),
    "reconnect.backoff.max.ms": 1_000,
}


class Positions:
    """Looks at topics with an engine's account. `config` is a librdkafka configuration.

    What is asked again and again is asked on one connection: to log in costs more than to ask.
    Safe to share between threads.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = {
            **config,
            "group.id": f"{GROUP_PREFIX}-positions",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
        # Connects in the background, and soon again after a failure.
        self._asking = AdminClient({**config, **_KEPT})

    def starting(self, topics: Sequence[str], known: Offsets) -> Offsets:
        """For each partition of `topics`, the offset in `known`, or else the earliest one.

        If retention has deleted the record at an offset, the earliest one is used too. Raises
        Unavailable if Kafka cannot be reached, or a topic does not exist (yet).
        """
        return {
            topic: {
                str(partition): _start(low, known.get(topic, {}).get(str(partition), EARLIEST))
                for partition, low in begins.items()
            }
            for topic, begins in self._offsets(topics, _EARLIEST).items()
        }

    def lost(self, known: Offsets) -> int:
        """The number of records after the offsets in `known` that are already deleted.

        Raises Unavailable if Kafka cannot be reached, or a topic does not exist.
        """
        read = [
            (topic, int(partition), offset)
            for topic, partitions in known.items()
            for partition, offset in partitions.items()
            if offset >= 0
        ]
        begins = self._offsets({topic for topic, _, _ in read}, _EARLIEST)
        if gone := {topic for topic, partition, _ in read if partition not in begins[topic]}:
            raise Unavailable(f"the topic {min(gone)} has fewer partitions than before")
        return sum(max(0, begins[topic][partition] - offset) for topic, partition, offset in read)

    def partitions(self) -> dict[str, int]:
        """The number of partitions of each existing topic. Raises Unavailable."""
        with _translated():
            found = self._asking.list_topics(timeout=_TIMEOUT_S).topics
        if any(topic.error not in {None, _NO_TOPIC} for topic in found.values()):
            raise Unavailable("Kafka does not know yet which topics there are")
        return {name: len(t.partitions) for name, t in found.items() if t.error is None}

    def ends(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The offset that the next record of each partition will get, by topic.

        If a transaction is open, it is the offset of the transaction. Raises Unavailable.
        """
        return self._offsets(list(topics), _LATEST)

    def raw_ends(self, topic: str) -> dict[int, int]:
        """As `ends` of the topic, but after all open transactions. Raises Unavailable."""
        return self._offsets([topic], _LATEST, IsolationLevel.READ_UNCOMMITTED)[topic]

    def _offsets(
        self,
        topics: Collection[str],
        which: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[str, dict[int, int]]:
        """That offset of each partition, by topic.

        A partition that was made a moment ago may have no leader yet. Then all is asked again.
        """
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            with _translated():
                try:
                    return self._answers(topics, which, isolation)
                except KafkaException as error:
                    if error.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                        raise
            time.sleep(_PAUSE_S)

    def _answers(
        self, topics: Collection[str], which: OffsetSpec, isolation: IsolationLevel
    ) -> dict[str, dict[int, int]]:
        places = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in _partitions(self._asking, topic)
        ]
        found: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        if not places:
            return found
        asked = self._asking.list_offsets(
            dict.fromkeys(places, which),
            isolation_level=isolation,
            request_timeout=_TIMEOUT_S,
        )
        for place, answer in asked.items():
            offset = int(answer.result(_TIMEOUT_S + 1).offset)
            found[place.topic][place.partition] = offset
        return found

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
            with _translated():
                yield consumer
        finally:
            consumer.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise Unavailable(f"Kafka did not answer: {error.args[0].name()}") from None
    except FutureTimeoutError:
        raise Unavailable("Kafka did not answer in time") from None


def _partitions(client: AdminClient | Consumer, topic: str) -> list[int]:
    found = client.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
    if found.error is not None or not found.partitions:
        raise Unavailable(f"the topic {topic} is not there or may not be read")
    return sorted(found.partitions)


def _start(low: int, offset: int) -> int:
    """The offset, or the earliest one if the record there is deleted or none is known."""
    return EARLIEST if offset < max(low, 0) else offset


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
