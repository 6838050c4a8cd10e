"""Moves the time of the streams of one ingest query, with ticks.

The ticker writes a tick into each partition of each sender's topic. Ingest reads it behind the
records that the broker took before it, hands these on to its producer, and then echoes the tick to
`time.echo`. From the echoes follows a time T for each stream (`secfilter.stream_time`). Before the
stream gets the tick T less its lateness, three things are made sure of:

- All that the tasks handed on before the echoes is in Kafka (`secfilter.written`).
- If the stream parks records, all that were parked before T have come back. So the tick of the
  sender that readmits goes the way of the parked records (`_tick_parked`).
- Ingest reads each sender that could write before T. A sender is in the catalog before its topic
  exists, so the catalog is asked after the echoes came. A new sender holds the stream's time until
  ingest reads it.
- No topic has got partitions that ingest does not read yet. They could have records before T.
- The proof is `SETTLED_S` old. A query asks Kafka for the ends of all partitions at once, but
  Kafka does not look at them in the same instant. So a query could see the tick, and not yet a
  tuple of another partition that was there first.

So no tuple that ingest took as in time comes behind a tick that makes it late. The tick goes to
each partition of lab.<stream>. What it says is true of all of them, so one would do for a query
that keeps state. A query that keeps none echoes each of them (`secfilter.output_ticker`).

Nothing here depends on a clock but the brokers' own, and the times at which ticks are sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer

from catalog.errors import Unavailable
from catalog.runs import IngestRun, IngestStream, Sender
from catalog.topics import ECHO_TOPIC, TAKEN_HEADER, lab_topic, parked_topic
from secfilter.echoes import heard, ignored, keep_ticking, tick_clients
from secfilter.lab import tick_record
from secfilter.stream_time import (
    NO_SENDER,
    Echo,
    Place,
    StreamTime,
    echo_of,
    next_wait_s,
    without_sender,
)
from secfilter.tick_mark import TickMark
from secfilter.written import Written

_LONGEST_S = 5.0
SETTLED_S = 0.5
# A sender that ingest does not read holds its stream's time for this long. Ingest takes in a new
# sender earlier. Then only a topic that was changed by hand is left.
IDLE_S = 180.0

# Is called with a record that was sent.
Noted = Callable[[KafkaError | None, Message], None]


@dataclass(frozen=True, slots=True)
class Ticking:
    """What a ticker needs besides its query.

    `config` is a librdkafka configuration with ingest's account, and `every_s` is the shortest time
    between two ticks of a stream. `unfinished` says which senders of these streams are not gone,
    and `draining` which of them nobody can write any more.
    """

    config: Mapping[str, Any] = field(repr=False)
    unfinished: Callable[[Collection[int]], Mapping[int, Collection[int]]]
    draining: Callable[[], Collection[int]]
    every_s: float = 1.0


@dataclass
class _Stream:
    """One stream: its time, the ticks that are due, and which senders it waits for."""

    stream: IngestStream
    counts: Mapping[str, int]
    wait_s: float
    next_at: float = 0.0
    time: StreamTime = field(default_factory=StreamTime)
    proven_ms: int = -1
    # Sender -> since when it was seen in the catalog, but not in the run.
    missing: dict[int, float] = field(default_factory=dict)
    # Draining sender -> the offsets of the last ticks in its topic, as far as they are known.
    last: dict[int, Mapping[Place, int]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    # The time that the newest ticks among the parked records have.
    parked_ms: int = -1

    @property
    def id(self) -> int:
        return self.stream.relation.object_id

    def open(self) -> list[Sender]:
        """The senders whose records may still come."""
        return [each for each in self.stream.senders if each.id not in self.closed]

    def others(self) -> list[Sender]:
        """Those of them that do not readmit."""
        return [each for each in self.open() if not each.readmits]

    def sent_ms(self) -> int | None:
        """The time up to which all is read that was sent, or None if it is not known.

        If nobody may send, ticks of the stream itself tell it.
        """
        others = self.others()
        return self.time.time_ms(self.places(others) if others else [(NO_SENDER, 0)])

    def now_ms(self) -> int | None:
        """The same, where what was parked has come back, too."""
        sent_ms = self.sent_ms()
        readmit = [each for each in self.open() if each.readmits]
        if sent_ms is None or not readmit:
            return sent_ms
        back_ms = self.time.time_ms(self.places(readmit))
        return None if back_ms is None else min(sent_ms, back_ms)

    def places(self, senders: Collection[Sender]) -> list[Place]:
        return [(each.id, p) for each in senders for p in range(self.counts[each.topic])]


def by_ticks(run: IngestRun) -> list[IngestStream]:
    """The streams of the run whose time is moved by ticks."""
    return [stream for stream in run.streams if stream.relation.by_ticks]


class Ticker:
    """Ticks of one ingest query, in one thread.

    `written` knows what the query has written. `partitions` are the numbers of partitions of all
    topics. `clock` gives seconds that only ever grow.
    """

    def __init__(
        self,
        run: IngestRun,
        mark: TickMark,
        ticking: Ticking,
        written: Written,
        partitions: Callable[[], Mapping[str, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run, self._mark, self._ticking = run, mark, ticking
        self._written, self._partitions, self._clock = written, partitions, clock
        self._streams: dict[int, _Stream] = {}
        self._due: list[tuple[float, _Stream, int]] = []

    def keep_up(self, goes_on: Callable[[], bool]) -> None:
        """Tick while the query runs."""

        def tick() -> None:
            with tick_clients(self._ticking.config, ECHO_TOPIC) as (producer, consumer):
                self._begin()
                while goes_on():
                    self._turn(producer, consumer, goes_on)

        keep_ticking(self._run.name, tick, goes_on)

    def _begin(self) -> None:
        counts = self._partitions()
        streams = by_ticks(self._run)
        needed = {sender.topic for stream in streams for sender in stream.senders}
        needed |= {lab_topic(stream.relation.name) for stream in streams}
        # A partition that nobody knows of would not be waited for.
        if missing := {ECHO_TOPIC, *needed} - counts.keys():
            raise Unavailable(f"the topic {min(missing)} is missing")
        self._due.clear()
        every = self._ticking.every_s
        self._streams = {s.relation.object_id: _Stream(s, counts, every) for s in streams}
        for each in self._streams.values():
            each.time.silent |= {s.id for s in each.stream.senders if s.readmits}

    def _turn(self, producer: Producer, consumer: Consumer, goes_on: Callable[[], bool]) -> None:
        self._hear(consumer)
        self._tick(producer)
        self._prove(goes_on)
        self._pass_on(producer)

    def _hear(self, consumer: Consumer) -> None:
        """Take the echoes that came, and wait for the first until something else is to do."""
        now = self._clock()
        times = [each.next_at for each in self._streams.values()] + [at for at, _, _ in self._due]
        messages = heard(consumer, min(1.0, max(0.01, min(times) - now)))
        senders = {s.id: [each] for each in self._streams.values() for s in each.stream.senders}
        senders[NO_SENDER] = list(self._streams.values())
        found = [echo for message in messages if (echo := _echo(message)) is not None]
        for echo in self._written.counting(e for e in found if e.life == self._mark.life):
            for each in senders.get(echo.sender, ()):
                each.time.hear(echo)

    def _tick(self, producer: Producer) -> None:
        """Send the ticks that are due."""
        due = [each for each in self._streams.values() if self._clock() >= each.next_at]
        if not due:
            return
        draining = self._ticking.draining()
        for each in due:
            for sender in each.open():
                if sender.readmits:
                    self._tick_parked(each, sender, producer)
                elif sender.id in draining:
                    self._tick_last(each, sender, producer)
                else:
                    self._tick_topic(each, sender, producer)
            if not each.others():
                producer.produce(ECHO_TOPIC, without_sender(self._mark.life), partition=0)
            every, busy = self._ticking.every_s, each.time.take_busy()
            each.wait_s = next_wait_s(each.wait_s, every, max(every, _LONGEST_S), busy=busy)
            each.next_at = self._clock() + each.wait_s
        producer.poll(0)

    def _tick_topic(
        self, each: _Stream, sender: Sender, producer: Producer, noted: Noted | None = None
    ) -> None:
        for _, partition in each.places([sender]):
            producer.produce(
                sender.topic, self._mark.value, partition=partition, on_delivery=noted or ignored
            )

    def _tick_parked(self, each: _Stream, sender: Sender, producer: Producer) -> None:
        """Send a tick behind the records that are parked now.

        It has the time T that the other senders prove. Who readmits the records hands it on behind
        them, and its echo has that time T. So the stream's time is T only when all have come back.
        """
        proven_ms = each.sent_ms()
        if proven_ms is None or proven_ms <= each.parked_ms or not self._written.holds():
            return
        each.parked_ms = proven_ms
        topic = parked_topic(each.stream.relation.name)
        for _, partition in each.places([sender]):
            producer.produce(
                topic,
                self._mark.value,
                partition=partition,
                headers=[(TAKEN_HEADER, str(proven_ms).encode())],
                on_delivery=ignored,
            )

    def _tick_last(self, each: _Stream, sender: Sender, producer: Producer) -> None:
        """Send one more tick to a topic that nobody can write any more, and then none.

        With more ticks, the topic would never be read to its end. Behind the last one comes no
        record, so the sender does not hold the stream's time once it is echoed.
        """
        if sender.id not in each.last:
            offsets: dict[Place, int] = {}

            def noted(error: KafkaError | None, message: Message) -> None:
                offset, partition = message.offset(), message.partition()
                if error is not None:
                    each.last.pop(sender.id, None)
                elif offset is not None and partition is not None:
                    offsets[sender.id, partition] = offset

            each.last[sender.id] = offsets
            self._tick_topic(each, sender, producer, noted)
        elif each.time.has_heard(each.places([sender]), each.last[sender.id]):
            each.closed.add(sender.id)

    def _prove(self, goes_on: Callable[[], bool]) -> None:
        """Find the streams whose time has moved, and make sure of it."""
        moved = []
        for each in self._streams.values():
            now_ms = each.now_ms()
            if now_ms is not None and now_ms > each.proven_ms:
                moved.append((each, now_ms))
        if not moved:
            return
        unfinished = self._ticking.unfinished([each.id for each, _ in moved])
        found = self._partitions()
        reads_all = [
            (each, now_ms)
            for each, now_ms in moved
            if self._reads_all(each, set(unfinished.get(each.id, ())))
            and all(found.get(s.topic) == each.counts[s.topic] for s in each.open())
        ]
        if not reads_all or not self._written.holds() or not goes_on():
            return
        at = self._clock() + SETTLED_S
        for each, now_ms in reads_all:
            each.proven_ms = now_ms
            self._due.append((at, each, now_ms))

    def _reads_all(self, each: _Stream, unfinished: Set[int]) -> bool:
        """Whether ingest reads all senders of the stream, but for those that are long away."""
        now = self._clock()
        missing = unfinished - {sender.id for sender in each.stream.senders}
        each.missing = {sender: each.missing.get(sender, now) for sender in missing}
        return all(now - since > IDLE_S for since in each.missing.values())

    def _pass_on(self, producer: Producer) -> None:
        now = self._clock()
        due = [each for each in self._due if each[0] <= now]
        self._due = [each for each in self._due if each[0] > now]
        for _, each, time_ms in due:
            relation = each.stream.relation
            headers, value = tick_record(time_ms - relation.lateness_ms)
            topic = lab_topic(relation.name)
            for partition in range(each.counts[topic]):
                producer.produce(topic, value, partition=partition, headers=list(headers))
        producer.poll(0)


def _echo(message: Message) -> Echo | None:
    """The echo in the record. A tick without a sender has its time and offset from the record."""
    echo = None if message.error() else echo_of(message.value())
    if echo is None or echo.sender != NO_SENDER:
        return echo
    return replace(echo, offset=message.offset() or 0, time_ms=message.timestamp()[1])
