"""Copies results from delivery topics to another one, which lacks them.

A result keeps its key, its headers and its time. One that the other topic has already, by its id,
is not copied again. So it does no harm to begin earlier than needed, or once more after a crash.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
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
_WAIT_S = 0.01
# The run of a class writes a result to all topics at once. So if the target gets it from there, it
# is there by then.
_HOLD_S = 0.2
_MOST_HELD = 10 * AT_ONCE
# Each delivery topic has one partition.
_PARTITION = 0
# So many of the newest ids are known, and a tenth of it of what was in a target before.
_IDS = 500_000
# If the readers have more groups, it is not looked up what each of them has read.
_GROUPS = 500


@dataclass(frozen=True, slots=True)
class _Refilling:
    """The next offset that a target gets of each source.

    It gets nothing before it is read itself up to `until`.
    """

    next: dict[str, int]
    until: int


@dataclass(frozen=True, slots=True)
class _Held:
    """A result that is written to the target when it is due, if it is not there by then."""

    due: float
    target: str
    message: Message


class RefillTopics:
    """Kafka's side of refills, for all classes together. Not for several threads."""

    def __init__(self, settings: KafkaSettings) -> None:
        """Connect in the background. Raises OSError if the password file cannot be read."""
        self._admin = refill_admin(settings)
        self._producer = refill_producer(settings)
        self._sources, self._targets = refill_consumer(settings), refill_consumer(settings)
        # Target -> its refilling, and up to where it is read. Source -> up to where it is read.
        self._begun: dict[str, _Refilling] = {}
        self._read_to: dict[str, int] = {}
        self._at: dict[str, int] = {}
        self._held: list[_Held] = []
        # The targets and ids of results that are there, the newest last.
        self._seen: OrderedDict[tuple[str, bytes], None] = OrderedDict()

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
            return {
                source: min(self._committed(source, readers, groups, before[source]))
                for source, readers in moved.items()
            }

    def _committed(
        self,
        source: str,
        readers: Collection[str],
        groups: Sequence[str],
        before: datetime,
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
            yield _offset_at(self._sources, source, before)

    def _groups(self) -> Sequence[str]:
        asked = self._admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S)
        return [each.group_id for each in finished(asked, "list the groups of consumers").valid]

    def _offset_of(self, group: str, topic: str) -> int | None:
        asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, _PARTITION)])]
        answers = self._admin.list_consumer_group_offsets(asked, request_timeout=REQUEST_TIMEOUT_S)
        (place,) = finished(answers[group], "look up what a group has read").topic_partitions
        return place.offset if place.offset >= 0 else None

    def begin(self, target: str, starts: Mapping[str, int]) -> None:
        """Begin to copy to the target from the sources, at these offsets. Raises Unavailable."""
        self.end(target)
        with _translated(f"refill {target}"):
            low, high = _ends(self._targets, target)
            for source in starts:
                _ends(self._sources, source)
        self._begun[target] = _Refilling(dict(starts), high)
        self._read_to[target] = max(low, high - _IDS // 10)
        for source, start in starts.items():
            # What others have of it already comes to them once more, and they leave it out.
            self._at[source] = min(start, self._at.get(source, start))
        self._assign()

    def end(self, target: str) -> None:
        """Copy nothing more to the target."""
        if self._begun.pop(target, None) is None:
            return
        del self._read_to[target]
        needed = {source for each in self._begun.values() for source in each.next}
        self._at = {source: at for source, at in self._at.items() if source in needed}
        self._held = [each for each in self._held if each.target != target]
        # After a failure it is not known whether what was sent is there.
        self._seen = OrderedDict((key, None) for key in self._seen if key[0] != target)
        self._assign()

    def copy(self, takes: Mapping[str, Callable[[Label], bool]]) -> Mapping[str, Unavailable]:
        """Copy those of the next results that the targets take. Waits hardly.

        `takes` has a rule for each target that was begun. Gives the failures by target: begin these
        anew. Raises Unavailable if nothing can be done now; begin all anew then.
        """
        with _translated("refill classes"):
            failures: dict[str, Unavailable] = {}
            if len(self._held) < _MOST_HELD:
                self._read_sources(takes, failures)
            self._read_targets(failures)
            self._send(failures)
        for target in failures:
            self.end(target)
        return failures

    def is_through(self, target: str) -> bool:
        """Whether all is copied that is in the target's sources now. Raises Unavailable."""
        with _translated(f"refill {target}"):
            return not any(each.target == target for each in self._held) and all(
                offset >= _ends(self._sources, source)[1]
                for source, offset in self._begun[target].next.items()
            )

    def close(self) -> None:
        """Close the connections."""
        self._sources.close()
        self._targets.close()

    def _assign(self) -> None:
        for consumer, at in ((self._sources, self._at), (self._targets, self._read_to)):
            consumer.assign([TopicPartition(t, _PARTITION, offset) for t, offset in at.items()])

    def _read_sources(
        self, takes: Mapping[str, Callable[[Label], bool]], failures: dict[str, Unavailable]
    ) -> None:
        due = time.monotonic() + _HOLD_S
        for topic, offset, message in _read(self._sources, self._at, self._failed_in(failures)):
            label = None if message is None else Label.from_wire(_header(message, LABEL_HEADER))
            for target, refilling in self._begun.items():
                if offset <= refilling.next.get(topic, offset):
                    continue
                refilling.next[topic] = offset
                # A fence has no label.
                if message is not None and label is not None and takes[target](label):
                    self._held.append(_Held(due, target, message))

    def _read_targets(self, failures: dict[str, Unavailable]) -> None:
        for topic, _, message in _read(self._targets, self._read_to, self._failed_in(failures)):
            if message is not None:
                self._note(topic, _header(message, ID_HEADER))

    def _failed_in(self, failures: dict[str, Unavailable]) -> Callable[[str, KafkaError], None]:
        """Notes the failure of a topic for all that need it."""

        def note(topic: str, error: KafkaError) -> None:
            failure = unavailable(KafkaException(error), f"refill a class, in {topic}")
            for target, refilling in self._begun.items():
                if topic == target or topic in refilling.next:
                    failures[target] = failure

        return note

    def _note(self, target: str, id_: bytes | None) -> None:
        if id_ is not None:
            self._seen[target, id_] = None
            if len(self._seen) > _IDS:
                self._seen.popitem(last=False)

    def _send(self, failures: dict[str, Unavailable]) -> None:
        """Write what was held for long enough, and is not there."""
        now = time.monotonic()
        ready = {t for t, each in self._begun.items() if self._read_to[t] >= each.until}
        due = [each for each in self._held if each.due <= now and each.target in ready]
        self._held = [each for each in self._held if each.due > now or each.target not in ready]
        failed = self._failed_in(failures)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed(str(message.topic()), error)

        for each in sorted(due, key=lambda held: _time_of(held.message)):
            id_ = _header(each.message, ID_HEADER)
            if id_ is not None and (each.target, id_) in self._seen:
                continue
            self._note(each.target, id_)
            self._producer.produce(
                each.target,
                each.message.value(),
                each.message.key(),
                partition=_PARTITION,
                timestamp=_time_of(each.message),
                headers=each.message.headers(),
                on_delivery=delivered,
            )
        # Longer than any message may take.
        if self._producer.flush(REQUEST_TIMEOUT_S + 1):
            raise Unavailable("refilling classes waits: Kafka does not answer")


def _read(
    consumer: Consumer, positions: dict[str, int], failed: Callable[[str, KafkaError], None]
) -> Iterator[tuple[str, int, Message | None]]:
    """The topic, the next offset and the record of each message; at an end there is no record."""
    for message in consumer.consume(AT_ONCE, _WAIT_S):
        topic, offset, error = message.topic(), message.offset(), message.error()
        is_end = error is not None and error.code() == KafkaError._PARTITION_EOF
        if error is not None and not is_end:
            if topic is None:
                raise KafkaException(error)
            failed(topic, error)
        elif topic in positions and offset is not None:
            positions[topic] = offset if is_end else offset + 1
            yield topic, positions[topic], None if is_end else message


def _header(message: Message, name: str) -> bytes | None:
    """The header's value if there is exactly one header of that name."""
    found = message.headers() or ()
    pairs = found.items() if isinstance(found, dict) else found
    values = [value for key, value in pairs if key == name]
    return values[0] if len(values) == 1 and isinstance(values[0], bytes) else None


def _time_of(message: Message) -> int:
    return int(message.timestamp()[1])


def _ends(consumer: Consumer, topic: str) -> tuple[int, int]:
    """The offsets of the first record that is there, and of the next one that comes."""
    place = TopicPartition(topic, _PARTITION)
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
    return _ends(consumer, topic)[1]


@contextmanager
def _translated(purpose: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise unavailable(error, purpose) from None
