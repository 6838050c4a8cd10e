"""Semantics `view` on the real broker: one query, and each class sums up what it may see."""

from __future__ import annotations

import time
from dataclasses import replace

from catalog.clearance import Clearance
from catalog.expression import AttributeRef
from catalog.label import Label
from catalog.placement import Placement
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Moving,
    MovingWindow,
    Source,
    ToStream,
    Union,
)
from catalog.runs import IngestRun, QueryRun
from catalog.time_source import TimeSource
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values
from tests.outputs import with_output

_ZERO_S = 1_769_860_800
_WAIT_S = 60.0


def totals(plane: Plane, query: QueryRun, index: int, results: int) -> list[object]:
    """What a class was told, in the order of its topic."""
    found = plane.read(query.classes[index].topic, results, timeout_s=_WAIT_S)
    once = {
        dict(headers(each))["id"]: value for each, value in zip(found, values(found), strict=True)
    }
    return [each["total"] for each in once.values()]


def test_classes_share_a_query_and_no_window(plane: Plane) -> None:
    seen, hidden = (
        replace(each, relation=replace(each.relation, time=TimeSource.BROKER))
        for each in (plane.stream(0), plane.stream(1))
    )
    both = Union((Source(seen.relation), Source(hidden.relation)))
    newest = Moving(both, MovingWindow(rows=3))
    summed = Aggregate(newest, (), (Aggregation("total", "sum", AttributeRef("price")),))
    query = plane.query(
        ToStream(summed, Change.ISTREAM),
        *(Clearance(Label.of(*held).bits) for held in ((0,), (0, 1), (1,))),
    )
    query = replace(query, placement=Placement.SOURCES)
    plane.start(IngestRun("ingest-1", (seen, hidden)))
    # The third class comes later.
    running = plane.start(with_output(query, classes=query.classes[:2]))

    def send(secret: int, *others: int) -> None:
        now = time.time() - _ZERO_S
        plane.send(hidden, tuple_at(now, price=secret))
        plane.send(
            seen, *(tuple_at(now + n / 1_000, price=price) for n, price in enumerate(others, 1))
        )

    send(100, 1, 2)
    assert totals(plane, query, 0, 2) == [1, 3]
    assert totals(plane, query, 1, 3) == [100, 101, 103]
    plane.break_off(running)
    running = plane.start(query)
    send(200, 4, 8)
    assert totals(plane, query, 0, 4) == [1, 3, 7, 14]
    assert totals(plane, query, 2, 1) == [200], "a class begins empty"
    states = [state for each in running.recentProgress for state in each.stateOperators]
    assert sum(state.numRowsDroppedByWatermark for state in states) == 0
