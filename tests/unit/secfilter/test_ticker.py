"""The ticker with a clock of its own: what holds a stream's time, and for how long."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream, Sender
from catalog.schema import Attribute, Schema, Type
from catalog.time_source import TimeSource
from catalog.topics import ECHO_TOPIC, lab_topic
from secfilter.tick_mark import TickMark
from secfilter.ticker import IDLE_S, SETTLED_S, Ticker, Ticking
from secfilter.written import ByFlush

MARK = TickMark(b"mark", "ab" * 16)
BEGAN_MS, LATENESS_MS = 1_800_000_000_000, 2_000
PARTITIONS = 2
# The longest time between two ticks of a quiet stream, until the second one is in lab.
QUIET_S = 5.0 + SETTLED_S + 0.1
_SCHEMA = Schema((Attribute("at", Type.TIMESTAMP),))
ONE, TWO, AWAY, FURTHER = 1, 2, 7, 8


def stream(number: int, *senders: int) -> IngestStream:
    relation = Relation(
        *(number, f"s{number}", RelationKind.STREAM, _SCHEMA, "at", LATENESS_MS),
        time=TimeSource.BROKER,
    )
    read = tuple(Sender(each, f"in.s{number}.{each}") for each in senders)
    return IngestStream(relation, Label.of(0), 1, 1, senders=read)


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick in lab: when it was sent, and of which time it is, both in seconds from the start."""

    sent_s: float
    time_s: float


@dataclass
class Kafka:
    """Kafka and ingest, which echoes each tick at once. No sender sends anything.

    `unread` are partitions of senders' topics from which ingest gets nothing.
    """

    senders: Mapping[str, int]
    unread: Collection[tuple[int, int]] = ()
    now_s: float = 0.0
    ends: Counter[tuple[str, int]] = field(default_factory=Counter)
    echoes: deque[bytes] = field(default_factory=deque)
    ticks: dict[tuple[str, int], list[Tick]] = field(default_factory=dict)

    def produce(self, topic: str, value: bytes, *, partition: int, **_rest: object) -> None:
        """Take a tick, from the ticker to ingest or from the ticker to queries."""
        if topic not in self.senders:
            time_s = (int(value) + LATENESS_MS - BEGAN_MS) / 1_000
            self.ticks.setdefault((topic, partition), []).append(Tick(self.now_s, time_s))
            return
        offset, sender = self.ends[topic, partition], self.senders[topic]
        self.ends[topic, partition] += 1
        if (sender, partition) not in self.unread:
            taken_ms = BEGAN_MS + round(self.now_s * 1_000)
            self.echoes.append(f"{MARK.life}:{sender}:{partition}:{offset}:{taken_ms}".encode())

    def poll(self, _wait_s: float) -> int:
        """Do nothing: what is produced is there."""
        return 0


@dataclass(frozen=True, slots=True)
class Hearing:
    """A consumer of the echoes. If there are none, it lets the time go by for which it waits."""

    kafka: Kafka

    def poll(self, wait_s: float) -> Any:
        if self.kafka.echoes:
            return self.consume(1, 0)[0]
        self.kafka.now_s += wait_s
        return None

    def consume(self, count: int, _wait_s: float) -> list[Any]:
        echoes = self.kafka.echoes
        values = [echoes.popleft() for _ in range(min(count, len(echoes)))]
        return [SimpleNamespace(value=lambda v=v: v, error=lambda: None) for v in values]


# The time in seconds -> the senders of stream 1 that are not gone.
Unfinished = Callable[[float], Collection[int]]
Ticked = Callable[..., Mapping[int, list[Tick]]]


@pytest.fixture
def ticked(monkeypatch: pytest.MonkeyPatch) -> Ticked:
    """Runs a ticker for some seconds, and gives the ticks of each stream."""

    def run(
        until_s: float,
        unfinished: Unfinished,
        streams: Sequence[IngestStream] = (stream(1, ONE, TWO),),
        unread: Collection[tuple[int, int]] = (),
    ) -> Mapping[int, list[Tick]]:
        topics = {sender.topic: sender.id for each in streams for sender in each.senders}
        labs = {each.relation.object_id: lab_topic(each.relation.name) for each in streams}
        kafka = Kafka(topics, unread)

        @contextmanager
        def clients(*_: object) -> Iterator[tuple[Kafka, Hearing]]:
            yield kafka, Hearing(kafka)

        monkeypatch.setattr("secfilter.ticker.tick_clients", clients)
        # A failure ends the test.
        monkeypatch.setattr("secfilter.ticker.keep_ticking", lambda _name, tick, _goes_on: tick())
        counts = {ECHO_TOPIC: 1, **dict.fromkeys([*topics, *labs.values()], PARTITIONS)}
        ticking = Ticking({}, lambda _: {1: unfinished(kafka.now_s)}, frozenset)
        ticker = Ticker(
            *(IngestRun("ingest-1", tuple(streams)), MARK, ticking),
            *(ByFlush(lambda: True), lambda: counts, lambda: kafka.now_s),
        )
        ticker.keep_up(lambda: kafka.now_s < until_s)
        found = {number: kafka.ticks.get((topic, 0), []) for number, topic in labs.items()}
        for number, topic in labs.items():
            for partition in range(1, PARTITIONS):
                assert kafka.ticks.get((topic, partition), []) == found[number]
        return found

    return run


def all_read(_now_s: float) -> Collection[int]:
    return {ONE, TWO}


def goes_on(ticks: Sequence[Tick], since_s: float, until_s: float) -> bool:
    """Whether time follows the clock all the while, and never goes back."""
    sent = [since_s, *(tick.sent_s for tick in ticks), until_s]
    times = [tick.time_s for tick in ticks]
    return (
        all(later - sooner <= QUIET_S for sooner, later in pairwise(sent))
        and all(0 <= tick.sent_s - tick.time_s <= QUIET_S for tick in ticks)
        and times == sorted(set(times))
    )


def test_silent_senders_and_partitions_hold_nothing(ticked: Ticked) -> None:
    ticks = ticked(2 * IDLE_S, all_read)[1]
    assert ticks[0].sent_s < 1
    assert goes_on(ticks, 0, 2 * IDLE_S)


def test_a_sender_that_is_not_read_holds_the_time_for_the_idle_limit(ticked: Ticked) -> None:
    """And no longer: then time is at once where it would have been without this sender."""
    until_s = IDLE_S + 60
    ticks = ticked(until_s, lambda _: {ONE, TWO, AWAY})[1]
    assert ticks[0].sent_s > IDLE_S
    assert goes_on(ticks, IDLE_S, until_s)


def test_a_sender_that_is_gone_holds_the_time_no_more(ticked: Ticked) -> None:
    ticks = ticked(160, lambda now_s: {ONE, TWO, AWAY} if now_s < 100 else {ONE, TWO})[1]
    assert ticks[0].sent_s >= 100
    assert goes_on(ticks, 100, 160)


def test_each_sender_that_is_not_read_has_its_own_limit(ticked: Ticked) -> None:
    def unfinished(now_s: float) -> Collection[int]:
        return {ONE, TWO, AWAY} if now_s < 100 else {ONE, TWO, AWAY, FURTHER}

    until_s = 100 + IDLE_S + 60
    ticks = ticked(until_s, unfinished)[1]
    assert ticks[0].sent_s > 100 + IDLE_S
    assert goes_on(ticks, 100 + IDLE_S + QUIET_S, until_s)


def test_a_sender_that_is_not_read_holds_no_other_stream(ticked: Ticked) -> None:
    found = ticked(100, lambda _: {ONE, AWAY}, (stream(1, ONE), stream(2, TWO)))
    assert found[1] == []
    assert goes_on(found[2], 0, 100)


@pytest.mark.parametrize("unread", [[(TWO, 1)], [(TWO, 0), (TWO, 1)]], ids=["one", "all"])
def test_the_limit_is_not_for_records_that_ingest_has_yet_to_read(
    ticked: Ticked, unread: Collection[tuple[int, int]]
) -> None:
    """Behind a tick that does not come back there may be tuples. They would be late."""
    assert ticked(3 * IDLE_S, all_read, unread=unread)[1] == []
