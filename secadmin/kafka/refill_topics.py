"""Copies results from delivery topics to another one, which lacks them.

A result keeps its key, its headers and its time. One that the other topic has already, by its id,
is not copied again. So it does no harm to begin earlier than needed, or once more after a crash.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from catalog.errors import Unavailable
from catalog.label import Label
from catalog.settings import KafkaSettings
from catalog.topics import ID_HEADER, LABEL_HEADER
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.connect import (
    REQUEST_TIMEOUT_S,
    finished,
    refill_admin,
    refill_consumer,
    refill_producer,
    unavailable,
)

AT_ONCE = 500
"""How many records are read of the sources in one go."""
_WAIT_S = 0.05
# Each delivery topic has one partition.
_PARTITION = 0
# So many of the newest ids of the target are known.
_IDS = 200_000
# If the readers have more groups, it is not looked up what each of them has read.
_GROUPS = 500


class RefillTopics:
    """Kafka's side of refills. Not for several threads."""

    def __init__(self, settings: KafkaSettings) -> None:
        """Connect in the background. Raises OSError if the password file cannot be read."""
        self._settings = settings
        self._admin = refill_admin(settings)
        self._producer = refill_producer(settings)

    def starts(
        self, moved: Mapping[str, Collection[str]], before: Mapping[str, datetime]
    ) -> dict[str, int]:
        """source -> the first offset that one of its former readers may not have read.

        `moved` has the principals of these readers. Each goes on at the earliest offset that one of
        its groups has committed. It is taken for granted that a reader without such an offset has
        read what is older than `before`. Raises Unavailable.
        """
        groups = self._groups() if moved else ()
        with _translated("look up what was read"):
            consumer = refill_consumer(self._settings)
            try:
                return {
                    source: min(self._committed(source, readers, groups, before[source], consumer))
                    for source, readers in moved.items()
                }
            finally:
                consumer.close()

    def _committed(
        self,
        source: str,
        readers: Collection[str],
        groups: Sequence[str],
        before: datetime,
        consumer: Consumer,
    ) -> Iterator[int]:
        """The offsets from which the readers go on."""
        own = {reader: group_prefix(reader) for reader in readers}
        theirs = {r: [g for g in groups if g.startswith(prefix)] for r, prefix in own.items()}
        if sum(map(len, theirs.values())) > _GROUPS:
            theirs = {reader: [] for reader in readers}
        found = {r: [self._offset_of(g, source) for g in each] for r, each in theirs.items()}
        known = {r: [o for o in each if o is not None] for r, each in found.items()}
        for offsets in known.values():
            yield from offsets
        if not known or not all(known.values()):
            yield _offset_at(consumer, source, before)

    def _groups(self) -> Sequence[str]:
        asked = self._admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S)
        return [each.group_id for each in finished(asked, "list the groups of consumers").valid]

    def _offset_of(self, group: str, topic: str) -> int | None:
        asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, _PARTITION)])]
        answers = self._admin.list_consumer_group_offsets(asked, request_timeout=REQUEST_TIMEOUT_S)
        (place,) = finished(answers[group], "look up what a group has read").topic_partitions
        return place.offset if place.offset >= 0 else None

    def open(self, target: str, starts: Mapping[str, int]) -> Refilling:
        """Begin to copy from the sources, at these offsets. Raises Unavailable."""
        return Refilling(self._settings, self._producer, target, starts)


class Refilling:
    """Copies from some topics to one, as long as `copy` is called. Not for several threads."""

    def __init__(
        self,
        settings: KafkaSettings,
        producer: Producer,
        target: str,
        starts: Mapping[str, int],
    ) -> None:
        self._producer = producer
        self._target = TopicPartition(target, _PARTITION)
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._next = dict(starts)
        self._failures: list[KafkaError] = []
        self._sources = refill_consumer(settings)
        self._written = refill_consumer(settings)
        try:
            with _translated(f"refill {target}"):
                low, high = _ends(self._written, self._target)
                self._read_to = max(low, high - _IDS)
                self._written.assign([TopicPartition(target, _PARTITION, self._read_to)])
                places = [TopicPartition(t, _PARTITION, offset) for t, offset in starts.items()]
                self._sources.assign(places)
        except BaseException:
            self.close()
            raise

    def copy(self, takes: Callable[[Label], bool]) -> None:
        """Copy those of the next results that the target takes. Waits hardly. Raises Unavailable.

        Make a new object after a failure.
        """
        with _translated(f"refill {self._target.topic}"):
            found = [each for each in self._records() if _is_taken(each, takes)]
            if not found:
                return
            self._look_what_is_there()
            for message in sorted(found, key=_time_of):
                self._send(message)
            left = self._producer.flush(REQUEST_TIMEOUT_S)
            if self._failures:
                raise KafkaException(self._failures[0])
            if left:
                raise Unavailable(f"refilling {self._target.topic} waits: Kafka does not answer")

    def is_through(self) -> bool:
        """Whether all is read that stands in the sources now. Raises Unavailable."""
        with _translated(f"refill {self._target.topic}"):
            return all(
                offset >= _ends(self._sources, TopicPartition(topic, _PARTITION))[1]
                for topic, offset in self._next.items()
            )

    def close(self) -> None:
        """Close the connections."""
        self._sources.close()
        self._written.close()

    def _records(self) -> list[Message]:
        first = self._sources.poll(_WAIT_S)
        if first is None:
            return []
        messages = [first, *self._sources.consume(AT_ONCE - 1, 0)]
        found = []
        for message in messages:
            topic, offset = message.topic(), message.offset()
            if _is_end(message) and topic is not None and offset is not None:
                self._next[topic] = max(self._next[topic], offset)
            elif (error := message.error()) is not None:
                raise KafkaException(error)
            elif topic is not None and offset is not None:
                self._next[topic] = offset + 1
                found.append(message)
        return found

    def _look_what_is_there(self) -> None:
        """Note the ids of all that stands in the target now."""
        _, end = _ends(self._written, self._target)
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while self._read_to < end:
            for message in self._written.consume(AT_ONCE, _WAIT_S):
                offset = message.offset()
                if _is_end(message) and offset is not None:
                    self._read_to = max(self._read_to, offset)
                elif (error := message.error()) is not None:
                    raise KafkaException(error)
                elif offset is not None:
                    self._read_to = offset + 1
                    deadline = time.monotonic() + REQUEST_TIMEOUT_S
                    self._note(_header(message, ID_HEADER))
            if time.monotonic() > deadline:
                raise Unavailable(f"refilling {self._target.topic} waits: it cannot be read")

    def _note(self, id_: bytes | None) -> None:
        if id_ is not None:
            self._seen[id_] = None
            if len(self._seen) > _IDS:
                self._seen.popitem(last=False)

    def _send(self, message: Message) -> None:
        id_ = _header(message, ID_HEADER)
        if id_ in self._seen:
            return
        self._note(id_)
        self._producer.produce(
            self._target.topic,
            message.value(),
            message.key(),
            partition=_PARTITION,
            timestamp=_time_of(message),
            headers=message.headers(),
            on_delivery=self._delivered,
        )

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error)


def _is_taken(message: Message, takes: Callable[[Label], bool]) -> bool:
    """Whether the message is a result that the target takes. A fence has no label."""
    label = Label.from_wire(_header(message, LABEL_HEADER))
    return label is not None and takes(label)


def _header(message: Message, name: str) -> bytes | None:
    """The header's value if there is exactly one header of that name."""
    found = message.headers() or ()
    pairs = found.items() if isinstance(found, dict) else found
    values = [value for key, value in pairs if key == name]
    return values[0] if len(values) == 1 and isinstance(values[0], bytes) else None


def _time_of(message: Message) -> int:
    return int(message.timestamp()[1])


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def _ends(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """The offsets of the first record that is there, and of the next one that comes."""
    low, high = consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)
    return int(low), int(high)


def _offset_at(consumer: Consumer, topic: str, at: datetime) -> int:
    """The offset of the first record of that time or later; if there is none, of the next one."""
    at_ms = int(at.replace(tzinfo=UTC).timestamp() * 1000)
    (found,) = consumer.offsets_for_times(
        [TopicPartition(topic, _PARTITION, at_ms)], timeout=REQUEST_TIMEOUT_S
    )
    if found.error is not None:
        raise KafkaException(found.error)
    if found.offset >= 0:
        return int(found.offset)
    return _ends(consumer, TopicPartition(topic, _PARTITION))[1]


@contextmanager
def _translated(purpose: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise unavailable(error, purpose) from None
