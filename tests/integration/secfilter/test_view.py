"""Semantics `view`, `exact` and `isolated` on the real broker: what each class is told."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

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
    Window,
)
from catalog.runs import IngestRun, IngestStream, QueryRun, apart
from catalog.time_source import TimeSource
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values
from tests.outputs import with_output
from tests.plans import grouped

_ZERO_S = 1_769_860_800
_WAIT_S = 60.0


def totals(plane: Plane, query: QueryRun, index: int, results: int) -> list[object]:
    """What a class was told, in the order of its topic."""
    found = plane.read(query.classes[index].topic, results, timeout_s=_WAIT_S)
    once = {
        dict(headers(each))["id"]: value for each, value in zip(found, values(found), strict=True)
    }
    return [each["total"] for each in once.values()]


def by_broker(plane: Plane, bit: int) -> IngestStream:
    """A stream with the broker's time."""
    stream = plane.stream(bit)
    return replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))


def newest_three(seen: IngestStream, hidden: IngestStream) -> ToStream:
    """The sum of the newest three tuples of both streams."""
    both = Union((Source(seen.relation), Source(hidden.relation)))
    newest = Moving(both, MovingWindow(rows=3))
    summed = Aggregate(newest, (), (Aggregation("total", "sum", AttributeRef("price")),))
    return ToStream(summed, Change.ISTREAM)


def test_classes_share_a_query_and_no_window(plane: Plane) -> None:
    seen, hidden = by_broker(plane, 0), by_broker(plane, 1)
    query = plane.query(
        newest_three(seen, hidden),
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


@pytest.mark.long
def test_each_role_of_a_class_has_a_window_and_its_state_goes_on(plane: Plane) -> None:
    """Exact match (000 §5.2.1): two roles of one reader, and a third one of another reader."""
    first, second = by_broker(plane, 0), by_broker(plane, 1)
    one, two = Clearance.of(0), Clearance.of(1)
    query = plane.query(newest_three(first, second), Clearance.of(0, 1), one)
    both, alone = query.classes
    query = with_output(query, classes=(replace(both, ways=(one, two)), alone))
    query = replace(query, placement=Placement.ROLES)
    plane.start(IngestRun("ingest-1", (first, second)))
    running = plane.start(query)

    def send(other: int, *prices: int) -> None:
        now = time.time() - _ZERO_S
        plane.send(second, tuple_at(now, price=other))
        mine = (tuple_at(now + n / 1_000, price=price) for n, price in enumerate(prices, 1))
        plane.send(first, *mine)

    send(100, 1, 2)
    assert totals(plane, query, 0, 3) == [100, 1, 3]
    plane.break_off(running)
    plane.start(query)
    send(200, 4, 8)
    assert totals(plane, query, 0, 6) == [100, 1, 3, 300, 7, 14]
    assert totals(plane, query, 1, 4) == [1, 3, 7, 14]


def test_an_isolated_class_is_told_nothing_by_what_it_may_not_see(plane: Plane) -> None:
    """Two runs for one class: beside the one there is much that is hidden, and nothing beside the
    other. Bytes, order, offsets and headers are the same, and so are lateness and windows.
    """
    seen, noisy, silent = (by_broker(plane, bit) for bit in (0, 1, 2))
    counted = (Aggregation("n", "count", None), Aggregation("total", "sum", AttributeRef("price")))
    plane.start(IngestRun("ingest-1", (seen, noisy, silent)))
    queries, runs = [], []
    for hidden in (noisy, silent):
        both = Union((Source(seen.relation), Source(hidden.relation)))
        windows = grouped(both, Window(1_000, 1_000), (), counted)
        query = replace(plane.query(windows, Clearance.of(0)), placement=Placement.APART)
        queries.append(query)
        runs.append(plane.start(apart(query, query.classes[0], f"{query.name}-1", {})))
    for price in range(3):
        # In the middle of a second, so that both tuples are in one window.
        now = int(time.time()) - _ZERO_S + 0.3
        noise = [tuple_at(now + ahead, price=1_000) for ahead in (-0.5, 0.0, 0.3, 30.0) * 5]
        plane.send(noisy, tuple_at(now - 90), *noise)
        plane.send(seen, tuple_at(now, price=price), tuple_at(now + 0.001, price=price * 10))
        # It is late, and it is none of what any window counts.
        plane.send(seen, tuple_at(now - 90))
        plane.send(noisy, *noise)
        time.sleep(1.1)
    told = [plane.read(each.classes[0].topic, 3, timeout_s=_WAIT_S) for each in queries]
    first, second = (
        [(each.offset(), each.value(), headers(each)[0]) for each in found] for found in told
    )
    assert first == second and len(first) == 3
    assert sum(int(str(each["n"])) for each in values(told[0])) == 6
    for run in runs:
        states = [state for each in run.recentProgress for state in each.stateOperators]
        assert sum(state.numRowsDroppedByWatermark for state in states) == 0
