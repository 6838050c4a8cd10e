"""A backfill on the real broker: what came before, as its class sees it, and then it is through."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.placement import Placement
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Filter,
    Moving,
    MovingWindow,
    Node,
    Source,
    ToStream,
    Union,
)
from catalog.runs import FedOutput, IngestRun, IngestStream, QueryRun
from catalog.schema import Type
from catalog.time_source import TimeSource
from catalog.topics import lab_topic
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values
from tests.outputs import with_output

_ZERO_S = 1_769_860_800
Until = Callable[[Callable[[], bool]], None]


def by_broker(plane: Plane, bit: int) -> IngestStream:
    """A stream with the broker's time."""
    stream = plane.stream(bit)
    return replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))


def both_streams(seen: IngestStream, hidden: IngestStream) -> Union:
    return Union((Source(seen.relation), Source(hidden.relation)))


def of_two(seen: IngestStream, hidden: IngestStream) -> ToStream:
    """The sum of the newest two tuples of both streams."""
    newest = Moving(both_streams(seen, hidden), MovingWindow(rows=2))
    summed = Aggregate(newest, (), (Aggregation("price", "sum", AttributeRef("price")),))
    return ToStream(summed, Change.ISTREAM)


def each_above_one(seen: IngestStream, hidden: IngestStream) -> Filter:
    """Each tuple with a price above 1."""
    above = Call(">", (AttributeRef("price"), Literal(1, Type.BIGINT)))
    return Filter(both_streams(seen, hidden), above)


def backfill_of(query: QueryRun, labs: list[str]) -> QueryRun:
    """The run of a backfill of the second class of the query, from the beginnings."""
    own = query.classes[1]
    begins = {topic: {"0": 0} for topic in labs}
    output = FedOutput(query.output, (own,), begins=begins)
    name = f"{query.name}-{own.id}"
    return replace(query, name=name, outputs=(output,), starting_offsets=begins, backfill=True)


@pytest.mark.parametrize(
    ("plan", "placement", "live", "filled"),
    [
        pytest.param(
            *(of_two, Placement.SOURCES, [1, 3, 6], [1, 3, 6]), marks=pytest.mark.long, id="view"
        ),
        pytest.param(each_above_one, Placement.SINK, [2, 4], [2, 4], id="strong"),
    ],
)
def test_it_gives_its_class_what_came_before_and_is_through(
    plane: Plane,
    until: Until,
    plan: Callable[[IngestStream, IngestStream], Node],
    placement: Placement,
    live: list[int],
    filled: list[int],
) -> None:
    """Its class may see one stream. So does another class that was there from the beginning."""
    seen, hidden = by_broker(plane, 0), by_broker(plane, 1)
    query = plane.query(plan(seen, hidden), Clearance.of(0), Clearance.of(0))
    query = replace(query, placement=placement)
    plane.start(IngestRun("ingest-1", (seen, hidden)))
    plane.start(with_output(query, classes=query.classes[:1]))
    for price in (1, 2, 4):
        now = time.time() - _ZERO_S
        plane.send(hidden, tuple_at(now, price=100))
        plane.send(seen, tuple_at(now, price=price))
    first = plane.read(query.classes[0].topic, len(live))
    assert [each["price"] for each in values(first)] == live
    labs = [lab_topic(each.relation.name) for each in (seen, hidden)]
    run = backfill_of(query, labs)
    engine = plane.engine_of(run.name)
    found = engine.positions.ends(labs)
    ends = {topic: {str(p): end for p, end in of.items()} for topic, of in found.items()}
    running = engine.running(run, settled=False)
    try:
        assert running.failure() is None
        until(lambda: running.is_through(ends))
        second = plane.read(run.classes[0].topic, len(filled), timeout_s=5.0)
        assert [each["price"] for each in values(second)] == filled, "all is there by then"
        if placement is Placement.SINK:
            ids = [[dict(headers(each))["id"] for each in of] for of in (first, second)]
            assert ids[0] == ids[1], "a client can tell what it has already"
        assert {dict(headers(each))["label"] for each in second} == {Label.of(0).to_wire()}
    finally:
        running.request_stop()
        until(running.ended)
    assert running.failure() is None
