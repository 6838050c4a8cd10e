"""A moving window on the real broker: ticks complete its instants, a crash loses no state."""

from __future__ import annotations

import time
from dataclasses import replace

from catalog.clearance import Clearance
from catalog.expression import AttributeRef
from catalog.label import Label
from catalog.plan import Aggregate, Aggregation, Change, Moving, MovingWindow, Source, ToStream
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
