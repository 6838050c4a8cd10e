"""Queries over one stream become one Spark query, and each gets and keeps what is its own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import Column, Filter, Node, Project, Source
from catalog.runs import FanOutClass, IngestRun, IngestStream, QueryRun
from catalog.schema import Type
from catalog.topics import out_topic
from secfilter.pace import Pace
from tests.integration.secfilter.plane import Feed, Plane, one_id_each, prices, tuple_at, values
from tests.integration.secfilter.running import Notes, running
from tests.outputs import with_output

Until = Callable[[Callable[[], bool]], None]
_PRICE = AttributeRef("price")
_MEMBERS = 4


def remainder(stream: IngestStream, number: int) -> Node:
    """The tuples of every fourth price, with the price alone in every second query."""
    rest = Call("%", (_PRICE, Literal(_MEMBERS, Type.BIGINT)))
    node: Node = Filter(Source(stream.relation), Call("=", (rest, Literal(number, Type.BIGINT))))
    return Project(node, (Column("price", _PRICE),)) if number % 2 else node


class Fusing:
    """Four queries over one stream, in engines of short batches that fuse them soon."""

    def __init__(self, plane: Plane, until: Until) -> None:
        pace = Pace(query_ms=1_000, ingest_ms=500, new_ms=1_000, settle_ms=1_000)
        plane.engine = replace(plane.engine, pace=pace)
        self.plane, self.until = plane, until
        self.engine = plane.engine_of("query")
        self.stream = plane.stream(0)
        plane.start(IngestRun(f"ingest-{self.stream.relation.name}", (self.stream,)))
        self.runs = [
            plane.query(remainder(self.stream, number), Clearance.of(0), Clearance.of(1))
            for number in range(_MEMBERS)
        ]

    def group_of(self, run: QueryRun) -> str | None:
        return self.engine.seats.group_of(run.name)

    def all_fused(self, notes: Notes) -> bool:
        """Whether one fused run carries all that is wanted, and nothing runs beside it."""
        groups = {self.group_of(run) for run in notes.wanted if isinstance(run, QueryRun)}
        active = [each.name for each in self.engine.spark.streams.active]
        own = {run.name for run in notes.wanted}
        return len(groups) == 1 and None not in groups and not own & set(active)

    def begin(self, notes: Notes) -> None:
        """Let all run, and wait until they are one."""
        notes.wanted = tuple(self.runs)
        self.until(lambda: self.all_fused(notes))
        self.until(lambda: all(notes.feeds(run) for run in notes.wanted))

    def crash(self) -> None:
        """Let the fused run end in the middle of its batch."""
        (query,) = (q for q in self.engine.spark.streams.active if (q.name or "")[:5] == "fused")
        query.stop()

    def expect(self, run: QueryRun, wanted: set[object]) -> None:
        """The first class gets all of these, each with one id; the second class gets nothing."""
        first, second = (each.topic for each in run.classes[:2])
        one_id_each(self.plane.read_prices(first, wanted))
        assert self.plane.read(second, 0) == []


@pytest.fixture
def fusing(plane: Plane, until: Until) -> Fusing:
    return Fusing(plane, until)


def own(number: int, sent: range, since: float = 0) -> set[object]:
    """The prices that the query of that number gets of those that were sent, from there on."""
    return {price for price in sent if price % _MEMBERS == number and price >= since}


def longest_wait_s(plane: Plane, run: QueryRun) -> float:
    """How long at most nothing new came to the first class of a run, in seconds."""
    times: dict[object, int] = {}
    messages = plane.read(run.classes[0].topic, 1)
    for message, value in zip(messages, values(messages), strict=True):
        times.setdefault(value["price"], message.timestamp()[1])
    came = sorted(times.values())
    return max((b - a for a, b in itertools.pairwise(came)), default=0) / 1_000


def test_queries_of_one_stream_become_one(fusing: Fusing) -> None:
    with running(fusing.engine, to_the_end=False, fuses=True) as notes:
        feed = Feed(fusing.plane, fusing.stream.senders[0].topic)
        began = time.monotonic()
        fusing.begin(notes)
        print(f"four queries run together: {time.monotonic() - began:.1f} s")
        time.sleep(1)
        sent = range(feed.end())
        # Each gets all from when it began, and a repeated result has the id of the first one.
        for number, run in enumerate(fusing.runs):
            fusing.expect(run, own(number, sent, since=len(sent) / 2))
        print("longest waits (s):", *(longest_wait_s(fusing.plane, run) for run in fusing.runs))


@pytest.mark.long
def test_a_member_that_goes_changes_or_crashes_costs_nobody_a_result(fusing: Fusing) -> None:
    plane, (zero, one, two, three) = fusing.plane, fusing.runs
    with running(fusing.engine, to_the_end=False, fuses=True) as notes:
        fusing.begin(notes)
        feed = Feed(plane, fusing.stream.senders[0].topic)
        time.sleep(2)
        # One is stopped: the others go on together.
        notes.wanted = (zero, one, two)
        fusing.until(lambda: notes.said[three.name].state == "stopped")
        stopped_at = feed.count
        fusing.until(lambda: all(notes.feeds(run) for run in notes.wanted))
        # One gets another class: it is fed at once, and leaves the group.
        topic = out_topic(two.output.name, "more")
        plane.topics(topic)
        more = with_output(two, classes=(*two.classes, FanOutClass(topic, Clearance.of(0), id=9)))
        notes.wanted = (zero, one, more)
        fusing.until(lambda: notes.feeds(more))
        fed_at = feed.count
        fusing.until(lambda: fusing.group_of(two) is None)
        # A fence is not proven: the run stands still, and the others do not.
        notes.wanted = (zero, more)
        fusing.until(lambda: notes.said[one.name].state == "stopped")
        silent = plane.read(one.classes[0].topic, 0)
        time.sleep(2)
        assert len(plane.read(one.classes[0].topic, 0)) == len(silent), "it stands still"
        notes.wanted = (zero, one, more)
        fusing.until(lambda: fusing.all_fused(notes))
        # A crash in the middle of a batch: all of it is done again. The one that was stopped
        # goes on where it was.
        fusing.crash()
        notes.wanted = (zero, one, more, three)
        fusing.until(lambda: all(notes.feeds(run) for run in notes.wanted))
        time.sleep(2)
        sent = range(feed.end())
        for number, run in enumerate((zero, one, more, three)):
            fusing.expect(run, own(number, sent))
        plane.read_prices(topic, own(2, sent, since=fed_at + 1))
        fusing.until(lambda: fusing.all_fused(notes))
    assert stopped_at < len(sent)


@pytest.mark.long
def test_a_deleted_topic_of_one_stops_it_alone(fusing: Fusing) -> None:
    plane, (zero, one, *_) = fusing.plane, fusing.runs
    with running(fusing.engine, to_the_end=False, fuses=True) as notes:
        fusing.begin(notes)
        for future in plane.admin.delete_topics([one.classes[0].topic]).values():
            future.result()
        fusing.until(lambda: notes.said[one.name].state == "stopped")
        plane.send(fusing.stream, *(tuple_at(2, price=price) for price in range(8)))
        fusing.expect(zero, {0, 4})
        assert prices(plane.read(zero.classes[0].topic, 2)) == {0, 4}
