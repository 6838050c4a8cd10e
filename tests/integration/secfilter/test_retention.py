"""Runs that stood still for longer than their topics are kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition

from catalog.clearance import Clearance
from catalog.plan import Aggregation, Node, Source, Window
from catalog.relation import Relation
from catalog.runs import IngestRun, Run
from catalog.topics import lab_topic
from secfilter.running_query import RunningQuery
from tests.integration.secfilter.plane import Plane, prices, tuple_at, values
from tests.lanes import sampled
from tests.plans import grouped

Until = Callable[[Callable[[], bool]], None]
_TOLD = {"lost_to_retention": 2}


def go_on(plane: Plane, run: Run) -> RunningQuery:
    """Start the run as supervision does."""
    running = plane.engine_of(run.name).running(run, settled=False)
    plane.queries.append(running._query)
    return running


def forget(plane: Plane, topic: str, before: int) -> None:
    """As retention does."""
    place = TopicPartition(topic, 0, before)
    for future in plane.admin.delete_records([place]).values():
        future.result()


def test_ingest_goes_on_with_what_is_left_and_says_what_is_not(plane: Plane) -> None:
    stream = plane.stream(0)
    run, lab = IngestRun("ingest-1", (stream,)), lab_topic(stream.relation.name)
    query = plane.start(run)
    plane.send(stream, tuple_at(1, price=1), tuple_at(1, price=2))
    assert len(plane.read(lab, 2)) == 2
    plane.end(query)
    plane.send(stream, *(tuple_at(1, price=n) for n in (3, 4, 5)))
    forget(plane, f"in.{stream.relation.name}", 4)
    assert go_on(plane, run).withheld() == _TOLD
    assert len(plane.read(lab, 3)) == 3


def all_of(relation: Relation) -> Node:
    return Source(relation)


def sums_of(relation: Relation) -> Node:
    count = (Aggregation("n", "count", None),)
    return grouped(Source(relation), Window(10_000, 10_000), (), count)


@pytest.mark.parametrize("plan", sampled((all_of, sums_of), 2, first=1))
def test_a_query_goes_on_with_what_is_left(
    plane: Plane, until: Until, plan: Callable[[Relation], Node]
) -> None:
    stream = plane.stream(0)
    topic = lab_topic(stream.relation.name)
    run = plane.query(plan(stream.relation), Clearance.of(0))
    plane.start(IngestRun("ingest-1", (stream,)))
    query = plane.start(run)
    plane.send(stream, tuple_at(1, price=1), tuple_at(2, price=2))

    def read_to(offset: int) -> bool:
        current = plane.engine.checkpoints.previous(run.name)
        return current is not None and current.committed().get(topic, {}).get("0", 0) >= offset

    until(lambda: read_to(2))
    plane.end(query)
    plane.send(stream, *(tuple_at(n, price=n) for n in (3, 4, 5, 30)))
    assert len(plane.read(topic, 6)) == 6
    forget(plane, topic, 4)
    assert go_on(plane, run).withheld() == _TOLD
    if plan is all_of:
        assert prices(plane.read(run.classes[0].topic, 4)) == {1, 2, 5, 30}
    else:
        # The window that was open counts what is left of it.
        assert [v["n"] for v in values(plane.read(run.classes[0].topic, 1))] == [1]
