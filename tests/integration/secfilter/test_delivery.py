"""Windows, joins and restarts through the real broker: what is delivered, and how often."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

import pytest
from confluent_kafka import Message

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Literal
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Emission,
    Filter,
    Join,
    Plan,
    Project,
    Source,
    Union,
    Window,
)
from catalog.runs import FanOutClass, IngestRun
from catalog.schema import Type
from secfilter.pace import Pace
from tests.integration.secfilter.plane import Feed, Plane, headers, tuple_at, values
from tests.lanes import sampled
from tests.outputs import with_output
from tests.plans import grouped, updating

Until = Callable[[Callable[[], bool]], None]


def sums(*inputs: Source) -> Aggregate:
    both = inputs[0] if len(inputs) == 1 else Union(inputs)
    counted = (
        Aggregation("total", "sum", AttributeRef("price")),
        Aggregation("n", "count", None),
    )
    return grouped(both, Window(10_000, 10_000), (Column("key", AttributeRef("key")),), counted)


def test_a_window_is_delivered_once_with_all_its_labels(plane: Plane) -> None:
    one, two = plane.stream(0), plane.stream(1)
    plan = sums(Source(one.relation), Source(two.relation))
    run = plane.query(plan, Clearance.of(0), Clearance.of(0, 1))
    plane.start(IngestRun("ingest-1", (one, two)))
    query = plane.start(run)
    plane.send(one, tuple_at(1, "x", 1), tuple_at(2, None, 5))
    plane.send(two, tuple_at(3, "x", 2))
    # Each stream's watermark has to pass the window's end: the slower one decides.
    plane.send(one, tuple_at(30, "later", 0))
    plane.send(two, tuple_at(30, "later", 0))
    topic = run.classes[1].topic
    assert sorted(values(plane.read(topic, 2)), key=repr) == [
        {**WINDOW, "key": "x", "total": 3, "n": 2},
        {**WINDOW, "key": None, "total": 5, "n": 1},
    ]
    assert [v["key"] for v in values(plane.read(run.classes[0].topic, 1))] == [None]
    plane.end(query)
    plane.start(run)
    plane.send(one, tuple_at(4, "x", 100), tuple_at(60, "later", 0))
    plane.send(two, tuple_at(60, "later", 0))
    later = plane.read(topic, 3)
    assert [v["key"] for v in values(later)].count("x") == 1
    assert values(later)[-1]["n"] == 2


@pytest.mark.long
def test_updates_are_delivered_at_once_as_long_as_they_may_be_seen(plane: Plane) -> None:
    one, two = plane.stream(0), plane.stream(1)
    plan = updating(sums(Source(one.relation), Source(two.relation)))
    run = plane.query(plan, Clearance.of(0), Clearance.of(0, 1))
    plane.start(IngestRun("ingest-1", (one, two)))
    query = plane.start(run)
    sent = []
    for stream, price in ((one, 1), (one, 2), (two, 5), (one, 10)):
        plane.send(stream, tuple_at(1, "x", price))
        sent.append(price)
        delivered = plane.read(run.classes[1].topic, len(sent))
        newest = {**WINDOW, "key": "x", "total": sum(sent), "n": len(sent)}
        assert values(delivered)[-1] == newest, "before the window has closed"
        if len(sent) == 2:
            # What it had counted, it knows after a restart.
            plane.end(query)
            query = plane.start(run)
    assert len({dict(headers(m))["id"] for m in delivered}) == len(sent)
    # From the other stream's first tuple on, the window holds what this class may not see.
    assert [v["total"] for v in values(plane.read(run.classes[0].topic, 2))] == [1, 3]


@pytest.mark.parametrize(
    ("updates", "labelled"),
    [
        (True, True),
        *(
            pytest.param(*both, marks=pytest.mark.long)
            for both in ((False, False), (False, True), (True, False))
        ),
    ],
)
def test_the_first_class_of_a_query_finds_its_state(
    plane: Plane, until: Until, *, updates: bool, labelled: bool
) -> None:
    stream = plane.stream(0)
    plan = Plan(sums(Source(stream.relation)), Emission.UPDATES if updates else Emission.CLOSED)
    run = plane.query(plan, Clearance.of(0), labelled=labelled)
    alone = with_output(run, classes=(), labelled=False)
    plane.start(IngestRun("ingest-1", (stream,)))
    query = plane.start(alone)
    plane.send(stream, tuple_at(1, "x", 1))

    def kept() -> int:
        progress = query.lastProgress
        return sum(s.numRowsTotal for s in progress.stateOperators) if progress else 0

    until(lambda: kept() > 0)
    plane.end(query)
    plane.start(run)
    plane.send(stream, tuple_at(2, "x", 2), tuple_at(30, "later", 0))
    delivered = values(plane.read(run.classes[0].topic, 2 if updates else 1))
    assert [v for v in delivered if v["key"] == "x"] == [{**WINDOW, "key": "x", "total": 3, "n": 2}]


def test_results_that_stand_there_again_count_once(plane: Plane) -> None:
    stream = plane.stream(0)
    inner = plane.query(Filter(Source(stream.relation), Literal(True, Type.BOOLEAN)))
    run = plane.query(sums(Source(inner.output)), Clearance.of(0))
    plane.start(run)
    for origin, price in (("7:0:0", 1), ("7:0:1", 2), ("7:0:0", 1), ("7:0:1", 2)):
        _write_lab(plane, inner.output.topic, origin, 1_000_000, price)
    _write_lab(plane, inner.output.topic, "7:0:2", 30_000_000, 0)
    assert [(v["total"], v["n"]) for v in values(plane.read(run.classes[0].topic, 1))] == [(3, 2)]


def _write_lab(plane: Plane, topic: str, origin: str, after_us: int, price: int) -> None:
    at = 1_769_860_800_000_000 + after_us
    labelled: list[tuple[str, str | bytes | None]] = [("tuple-3", b"1")]
    plane.producer.produce(topic, f"{at}\x1fx\x1f{price}".encode(), origin, headers=labelled)
    assert plane.producer.flush(10) == 0


WINDOW = {
    "window_start": "2026-01-31T12:00:00.000000Z",
    "window_end": "2026-01-31T12:00:10.000000Z",
}


@pytest.mark.long
def test_an_interval_join_pairs_and_combines(plane: Plane, until: Until) -> None:
    one, two = plane.stream(0), plane.stream(1)
    sides = [
        Project(
            Source(stream.relation),
            tuple(Column(f"{name}.{a}", AttributeRef(a)) for a in ("at", "key", "price")),
        )
        for name, stream in (("l", one), ("r", two))
    ]
    equal = ((AttributeRef("l.key"), AttributeRef("r.key")),)
    joined = Join(sides[0], sides[1], equal, -1_000, 2_000)
    shown = (("key", "l.key"), ("left_price", "l.price"), ("right_price", "r.price"))
    plan = Project(joined, tuple(Column(n, AttributeRef(a)) for n, a in shown))
    run = plane.query(plan, Clearance.of(0, 1), Clearance.of(0))
    plane.start(IngestRun("ingest-1", (one, two)))
    query = plane.start(run)
    plane.send(one, tuple_at(5, "x", 1), tuple_at(5, "y", 2), tuple_at(5, None, 3))
    plane.send(two, tuple_at(4, "x", 10), tuple_at(7, "x", 20), tuple_at(7.001, "x", 30))
    plane.send(two, tuple_at(5, None, 40))
    got = values(plane.read(run.classes[0].topic, 2))
    assert {v["right_price"] for v in got} == {10, 20} and len(got) == 2
    assert plane.read(run.classes[1].topic, 0, timeout_s=1) == []

    def kept() -> int:
        progress = query.lastProgress
        return sum(s.numRowsTotal for s in progress.stateOperators) if progress else 0

    until(lambda: kept() > 0)
    plane.send(one, tuple_at(100, "z", 1))
    plane.send(two, tuple_at(100, "z", 1))
    until(lambda: kept() <= 2)


def test_planned_restarts_lose_nothing_and_keep_ids(plane: Plane) -> None:
    stream = plane.stream(0)
    run = plane.query(Filter(Source(stream.relation), Literal(True, Type.BOOLEAN)), Clearance.of(0))
    more = (*run.classes, plane_class(plane))
    fed_more = with_output(run, classes=more, labelled=True)
    ingest_run = IngestRun("ingest-1", (stream,))
    ingest, query = plane.start(ingest_run), plane.start(run)
    feed = Feed(plane, f"in.{stream.relation.name}")
    for _ in range(3):
        time.sleep(1.3)
        plane.end(query)
        query = plane.start(fed_more)
        plane.end(ingest)
        ingest = plane.start(ingest_run)
    sent = feed.end()
    got = plane.read_prices(run.classes[0].topic, set(range(sent)))
    once = {dict(headers(m))["id"]: v["price"] for m, v in zip(got, values(got), strict=True)}
    assert list(once.values()) == list(range(sent)), "none lost, in order, repeated ones by id"


def plane_class(plane: Plane) -> FanOutClass:
    name = f"out.o-extra.{time.monotonic_ns()}"
    plane.topics(name)
    return FanOutClass(name, Clearance.of(0))


def test_a_stop_inside_a_batch_puts_nothing_into_lab_twice(plane: Plane) -> None:
    stream = plane.stream(0, partitions=2)
    run = IngestRun("ingest-1", (stream,))
    query = plane.start(run)
    feed = Feed(plane, f"in.{stream.relation.name}")
    for _ in range(3):
        time.sleep(1.3)
        plane.break_off(query)
        query = plane.start(run)
    sent = feed.end()
    lab = plane.read(f"lab.{stream.relation.name}", sent)
    assert sorted(prices(lab)) == list(range(sent))
    for message in lab:
        assert (message.key() or b"").split(b":")[1] == str(message.partition()).encode()


@pytest.mark.parametrize("log", sampled(("offsets", "commits"), 2))
def test_a_run_goes_on_where_its_first_commit_was_cut_off(plane: Plane, log: str) -> None:
    plane.engine = replace(plane.engine, pace=Pace(ingest_ms=60_000))
    stream = plane.stream(0)
    run = IngestRun("ingest-1", (stream,))
    query = plane.start(run)
    plane.send(stream, tuple_at(1))
    assert len(plane.read(f"lab.{stream.relation.name}", 1)) == 1
    plane.break_off(query)
    current = plane.engine.checkpoints.previous(run.name)
    assert current is not None and current.committed() == current.start
    # What Spark writes before it moves it to its place: killed in between, it stays.
    (current.spark / log / ".0.5b1c.tmp").write_text("v1")
    plane.start(run)
    plane.send(stream, tuple_at(2, price=2))
    assert prices(plane.read(f"lab.{stream.relation.name}", 2)) == [1, 2]


@pytest.mark.long
def test_a_stop_in_planning_puts_nothing_into_lab_twice(plane: Plane) -> None:
    # Longer than it takes to start anew: what is left running would be seen.
    plane.engine = replace(plane.engine, pace=Pace(ingest_ms=4_000))
    stream = plane.stream(0)
    run = IngestRun("ingest-1", (stream,))
    feed = Feed(plane, f"in.{stream.relation.name}")
    stops = (plane.stopped_in_planning(plane.start(run)) for _ in range(12))
    assert sum(islice(filter(None, stops), 3)) == 3, "planning was nearly always over already"
    plane.start(run)
    time.sleep(1)
    sent = feed.end()
    assert prices(plane.read(f"lab.{stream.relation.name}", sent)) == list(range(sent))


def prices(lab: Sequence[Message]) -> list[int]:
    """The attribute `price` of records of a labelled topic."""
    return [int((message.value() or b"").split(b"\x1f")[2]) for message in lab]


def test_streams_join_and_leave_a_group(plane: Plane) -> None:
    one, two, three = (plane.stream(bit) for bit in range(3))
    query = plane.start(IngestRun("ingest-1", (one, two)))
    plane.send(one, tuple_at(1))
    plane.send(two, tuple_at(1))
    assert len(plane.read(f"lab.{one.relation.name}", 1)) == 1
    plane.end(query)
    plane.send(three, tuple_at(1))
    query = plane.start(IngestRun("ingest-1", (two, three)))
    plane.send(two, tuple_at(2))
    assert len(plane.read(f"lab.{two.relation.name}", 2)) == 2
    assert len(plane.read(f"lab.{three.relation.name}", 1)) == 1
    plane.end(query)
    plane.send(one, tuple_at(2))
    plane.start(IngestRun("ingest-1", (one, two, three)))
    assert len(plane.read(f"lab.{one.relation.name}", 2)) == 2


# tests/unit/secfilter/test_lab.py has all of them without a broker.
@pytest.mark.parametrize(
    "label",
    [
        b"1,0",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (None, b"x", b"", b"0", b"2", b"3", b" 1", b"+1", b"1,1", b"\xff")
        ),
    ],
)
def test_a_record_without_valid_label_stops_at_source(plane: Plane, label: bytes | None) -> None:
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0, 1, 64))
    query = plane.start(run)
    topic, value = stream.relation.topic, b"0\x1fx\x1f1"
    own: list[tuple[str, str | bytes | None]] = [("tuple-3", label)]
    plane.producer.produce(topic, value, headers=own if label is not None else [])
    plane.producer.produce(topic, value, headers=[("label", b"1"), ("tuple-3", b"1")])
    plane.producer.produce(topic, b"0\x1fx\x1f2", headers=[("tuple-3", b"1")])
    plane.producer.flush(10)
    assert [v["price"] for v in values(plane.read(run.classes[0].topic, 1))] == [2]
    plane.end(query)
    seen = [p.observedMetrics["source_1"]["withheld"] for p in query.recentProgress]
    assert sum(seen) == 2
