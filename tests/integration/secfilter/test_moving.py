"""A moving window on the real broker: ticks complete its instants, a crash loses no state."""

from __future__ import annotations

import time
from dataclasses import replace

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Project,
    Source,
    ToStream,
)
from catalog.runs import IngestRun, IngestStream
from catalog.time_source import TimeSource
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values

_ZERO_S = 1_769_860_800
_WAIT_S = 60.0
_SUMS = (
    Aggregation("n", "count", None),
    Aggregation("total", "sum", AttributeRef("price")),
)


def send(plane: Plane, stream: IngestStream, *prices: int) -> None:
    """Send tuples of now, a millisecond apart."""
    now = time.time() - _ZERO_S
    plane.send(stream, *(tuple_at(now + n / 1_000, price=n) for n in prices))


def test_the_newest_rows_outlive_a_crash(plane: Plane) -> None:
    stream = plane.stream(0)
    stream = replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))
    newest = Moving(Source(stream.relation), MovingWindow(rows=3))
    plan = ToStream(Aggregate(newest, (), _SUMS), Change.ISTREAM)
    query = plane.query(plan, Clearance(Label.of(0).bits))
    topic = query.classes[0].topic
    plane.start(IngestRun("ingest-1", (stream,)))
    running = plane.start(query)
    send(plane, stream, 1, 2, 3)
    # No later tuple comes: the ticks alone complete these instants.
    before = plane.read(topic, 3, timeout_s=_WAIT_S)
    plane.break_off(running)
    send(plane, stream, 4, 5)
    running = plane.start(query)
    after = plane.read(topic, len(before) + 2, timeout_s=_WAIT_S)
    # A result may come again, with the same id.
    found = {
        dict(headers(each))["id"]: value for each, value in zip(after, values(after), strict=True)
    }
    results = sorted(found.values(), key=lambda value: str(value["instant"]))
    assert [each["n"] for each in results] == [1, 2, 3, 3, 3]
    assert [each["total"] for each in results] == [1, 3, 6, 9, 12]
    states = [state for each in running.recentProgress for state in each.stateOperators]
    assert sum(state.numRowsDroppedByWatermark for state in states) == 0


def side(alias: str, stream: IngestStream, window: MovingWindow) -> Node:
    names = stream.relation.schema.names
    moving = Moving(Source(stream.relation), window)
    return Project(moving, tuple(Column(f"{alias}.{n}", AttributeRef(n)) for n in names))


def test_pairs_of_two_streams_outlive_a_crash(plane: Plane) -> None:
    streams = [plane.stream(bit) for bit in (0, 1)]
    orders, quotes = (
        replace(each, relation=replace(each.relation, time=TimeSource.BROKER)) for each in streams
    )
    keys = ((AttributeRef("o.key"), AttributeRef("q.key")),)
    both = MovingJoin(
        side("o", orders, MovingWindow(range_ms=0)),
        side("q", quotes, MovingWindow(rows=1, partition=(AttributeRef("key"),))),
        keys,
    )
    more = Call("-", (AttributeRef("o.price"), AttributeRef("q.price")))
    query = plane.query(
        ToStream(Project(both, (Column("more", more),)), Change.ISTREAM),
        Clearance(Label.of(0, 1).bits),
        Clearance(Label.of(0).bits),
    )
    plane.start(IngestRun("ingest-1", (orders, quotes)))
    running = plane.start(query)
    send(plane, quotes, 10)
    time.sleep(0.1)
    send(plane, orders, 13, 15)
    topic = query.classes[0].topic
    before = plane.read(topic, 2, timeout_s=_WAIT_S)
    plane.break_off(running)
    # The quote is in the state only, and the next order finds it there.
    send(plane, orders, 18)
    plane.start(query)
    after = plane.read(topic, len(before) + 1, timeout_s=_WAIT_S)
    found = {
        dict(headers(each))["id"]: value for each, value in zip(after, values(after), strict=True)
    }
    assert sorted(int(str(each["more"])) for each in found.values()) == [3, 5, 8]
    # Nobody gets a pair who may see one of its streams only.
    assert plane.read(query.classes[1].topic, 0, timeout_s=1.0) == []
