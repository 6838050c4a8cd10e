"""Parked records: reads them from parked.*, and writes each where it belongs, exactly once.

A batch of records, what is written for them, and how far they are read is one transaction of
Kafka. After a crash ingest may park a record again. Records of one sender are parked in the order
of their offsets, so a record with an offset that was seen is a repeat. The newest offsets that were
seen are kept with the position in the topic.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from catalog.errors import Unavailable
from catalog.settings import KafkaSettings
from catalog.topics import ROLES_HEADER, SENDER_HEADER, TAKEN_HEADER, topic_relation
from secadmin.kafka.connect import REQUEST_TIMEOUT_S, parked_consumer, parked_producer

PARKED = r"^parked\..*"
AT_ONCE = 500
# Kafka keeps 4,096 bytes with a position. Without an offset a repeat may be delivered twice.
_MOST_METADATA = 4_000
# From the newest on, so that the offsets of senders that are long gone are dropped first.
Seen = dict[str, int]


@dataclass(frozen=True, slots=True)
class Parked:
    """A parked record. `roles` is its role expression, or None if it is a tick.

    `sender`, `place` (partition and offset) and `taken_ms` say who sent it, where it was, and
    when the broker took it.
    """

    stream: str
    partition: int
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    taken_ms: str
    sender: str = ""
    place: tuple[str, str] = ("", "")
    roles: str | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A record to write."""

    topic: str
    partition: int
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    headers: tuple[tuple[str, bytes], ...] = field(repr=False)


class ParkedTopics:
    """All topics of parked records. Several services share their partitions. Not for threads."""

    def __init__(self, settings: KafkaSettings) -> None:
        """Connect in the background. Raises OSError if the password file cannot be read."""
        self._consumer: Consumer = parked_consumer(settings)
        self._producer: Producer = parked_producer(settings, f"secadmin.{secrets.token_hex(8)}")
        self._ready = False
        self._seen: dict[tuple[str, int], Seen] = {}

    def move(self, decide: Callable[[Sequence[Parked]], Sequence[Moved]], wait_s: float) -> int:
        """Move the records that come within `wait_s`. Gives how many were read.

        `decide` says what is written for them. If it fails, nothing of them is moved. Raises
        Unavailable if Kafka fails; make a new object then.
        """
        try:
            if not self._ready:
                self._producer.init_transactions(REQUEST_TIMEOUT_S)
                self._consumer.subscribe([PARKED], on_assign=self._assigned)
                self._ready = True
            first = self._consumer.poll(wait_s)
            # The first must not wait for others.
            found = [] if first is None else [first, *self._consumer.consume(AT_ONCE, 0)]
            messages = [message for message in found if message.error() is None]
            if messages:
                self._move(messages, decide)
        except KafkaException as error:
            raise Unavailable(f"parked records wait: Kafka says {error.args[0].str()}") from None
        return len(messages)

    def close(self) -> None:
        """Close the connections. What is not committed is read again by the next."""
        self._consumer.close()

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        for place in consumer.committed(places, timeout=REQUEST_TIMEOUT_S):
            known = json.loads(place.metadata) if place.metadata else {}
            self._seen[place.topic, place.partition] = dict(known)
        consumer.assign(places)

    def _move(
        self, messages: Sequence[Message], decide: Callable[[Sequence[Parked]], Sequence[Moved]]
    ) -> None:
        seen = {place: dict(known) for place, known in self._seen.items()}
        records = [parked for message in messages if (parked := _new(message, seen)) is not None]
        moved = decide(records)
        self._producer.begin_transaction()
        for each in moved:
            self._producer.produce(
                each.topic,
                each.value,
                each.key,
                partition=each.partition,
                headers=list(each.headers),
            )
        ends = _ends(messages, seen)
        group = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(ends, group, REQUEST_TIMEOUT_S)
        self._producer.commit_transaction(REQUEST_TIMEOUT_S)
        self._seen = seen


def _new(message: Message, seen: dict[tuple[str, int], Seen]) -> Parked | None:
    """The parked record in a message, or None if it is a repeat or no such record."""
    topic, partition = str(message.topic()), int(message.partition() or 0)
    headers = _headers(message)
    tick = Parked(
        topic_relation(topic),
        partition,
        message.key(),
        message.value(),
        headers.get(TAKEN_HEADER, ""),
    )
    if ROLES_HEADER not in headers:
        return tick
    place = headers["partition"], headers["offset"]
    sender = headers[SENDER_HEADER]
    known = seen.setdefault((topic, partition), {})
    if int(place[1]) <= known.get(sender, -1):
        return None
    # The newest sender is the last one.
    known.pop(sender, None)
    known[sender] = int(place[1])
    return replace(tick, sender=sender, place=place, roles=headers[ROLES_HEADER])


def _headers(message: Message) -> dict[str, str]:
    found = message.headers() or ()
    pairs = found.items() if isinstance(found, dict) else found
    return {key: value.decode() for key, value in pairs if isinstance(value, bytes)}


def _ends(messages: Sequence[Message], seen: dict[tuple[str, int], Seen]) -> list[TopicPartition]:
    ends: dict[tuple[str, int], int] = {}
    for message in messages:
        offset = message.offset()
        if offset is not None and offset != OFFSET_INVALID:
            ends[str(message.topic()), int(message.partition() or 0)] = offset + 1
    return [
        TopicPartition(topic, partition, end, _metadata(seen.get((topic, partition), {})))
        for (topic, partition), end in ends.items()
    ]


def _metadata(known: Seen) -> str:
    while len(text := json.dumps(known, separators=(",", ":"))) > _MOST_METADATA:
        del known[next(iter(known))]
    return text
