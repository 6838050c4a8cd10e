"""Operators with state on the real broker: ticks complete their results, a crash loses no state."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka import Message
from pyspark.sql.streaming.query import StreamingQuery

from catalog.aggregates import COUNT_DISTINCT, FIRST, LAST
from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.pattern import (
    Definition,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
)
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    OrderKey,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Window,
)
from catalog.relation import Relation
from catalog.runs import IngestRun, IngestStream, QueryRun
from catalog.schema import Type
from catalog.time_source import TimeSource
from secadmin.languages import parse_sql
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values
from tests.plans import grouped

_ZERO_S = 1_769_860_800
_WAIT_S = 60.0
_SUMS = (
    Aggregation("n", "count", None),
    Aggregation("total", "sum", AttributeRef("price")),
)


def await_newest(plane: Plane, query: QueryRun, is_it: Callable[[Message], bool]) -> Message:
    """The query's upsert with the greatest version, which grows over all restarts, once it is it.

    How many upserts there are depends on the batches, and some may come again.
    """

    def newest_of(upserts: list[Message]) -> Message:
        return max(upserts, key=lambda each: int(dict(headers(each))["row-version"]))

    topic = query.classes[0].topic
    found = plane.read_until(
        topic, lambda found: bool(found) and is_it(newest_of(found)), timeout_s=_WAIT_S
    )
    return newest_of(found)


def counted(upsert: Message) -> object:
    """How many tuples the upsert's group has."""
    (value,) = values([upsert])
    return value and value["n"]


def send(plane: Plane, stream: IngestStream, *prices: int) -> None:
    """Send tuples of now, a millisecond apart."""
    now = time.time() - _ZERO_S
    plane.send(stream, *(tuple_at(now + n / 1_000, price=n) for n in prices))


@pytest.mark.long
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


@pytest.mark.long
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


_PRICE = AttributeRef("price")
_LONG_MS = 120_000
_TOTAL = (Aggregation("total", "sum", _PRICE),)
_DIFFERENT = (
    Aggregation("prices", COUNT_DISTINCT, _PRICE),
    Aggregation("keys", COUNT_DISTINCT, AttributeRef("key")),
    Aggregation("first", FIRST, _PRICE),
    Aggregation("last", LAST, _PRICE),
)


def over_windows(source: Source, now_ms: int) -> Node:
    seconds = grouped(source, Window(1_000, 1_000), (), _TOTAL)
    whole = (Aggregation("total", "sum", AttributeRef("total")),)
    return grouped(seconds, SessionWindow(_LONG_MS), (), whole)


def paired(kind: JoinKind, source: Source, now_ms: int) -> Node:
    """Tuples up to 2 with later ones of their key, of which those of the key y have none."""
    cheap = Call("<=", (_PRICE, Literal(2, Type.BIGINT)))
    dear = Filter(source, Call("not", (cheap,)))
    names = source.schema.names
    right = Project(dear, tuple(Column(f"r.{name}", AttributeRef(name)) for name in names))
    equal = ((AttributeRef("key"), AttributeRef("r.key")),)
    both = Join(Filter(source, cheap), right, equal, 0, _LONG_MS, kind=kind)
    shown = ("price", "r.price") if kind.shows_right else ("price",)
    columns = (Column(name.replace(".", "_"), AttributeRef(name)) for name in shown)
    return Project(both, tuple(columns))


def rising(source: Source, _now_ms: int) -> Node:
    """Prices of a key that rise four times, with the next price of each, if it comes in time."""
    before, behind = (Reading(name, LAST, None, _PRICE, moved=by) for name, by in _NEAR)
    found = Match(
        source,
        (AttributeRef("key"),),
        (Reading("top", LAST, "up", _PRICE, final=True), behind),
        PatternSequence((PatternVariable("low"), PatternRepeat(PatternVariable("up"), 3, 3))),
        _LONG_MS,
        (Definition("up", Call(">", (_PRICE, AttributeRef(before.name)))),),
        (before,),
        per_row=True,
    )
    return Project(found, tuple(Column(n, AttributeRef(n)) for n in ("price", "top", "behind")))


_NEAR = (("row.0", -1), ("behind", 1))


def renamed(source: Node, names: tuple[str, ...]) -> Project:
    """These attributes, each with `r.` before its name."""
    return Project(source, tuple(Column(f"r.{name}", AttributeRef(name)) for name in names))


def with_window(source: Source, now_ms: int) -> Node:
    """Each tuple with the number of tuples of its key in its window."""
    window = Window(_LONG_MS, _LONG_MS, now_ms % _LONG_MS)
    counted = grouped(source, window, (Column("key", AttributeRef("key")),), _SUMS[:1])
    equal = ((AttributeRef("key"), AttributeRef("r.key")),)
    both = Join(counted, renamed(source, source.schema.names), equal, -_LONG_MS, 0)
    return Project(both, (Column("n", AttributeRef("n")), Column("price", AttributeRef("r.price"))))


def over_pairs(source: Source, now_ms: int) -> Node:
    """The pairs of cheap tuples with later dear ones of their key, counted."""
    cheap = Call("<=", (_PRICE, Literal(2, Type.BIGINT)))
    dear = renamed(Filter(source, Call("not", (cheap,))), source.schema.names)
    equal = ((AttributeRef("key"), AttributeRef("r.key")),)
    pairs = Join(Filter(source, cheap), dear, equal, 0, _LONG_MS)
    totals = (_SUMS[0], Aggregation("total", "sum", AttributeRef("r.price")))
    return grouped(pairs, Window(_LONG_MS, _LONG_MS, now_ms % _LONG_MS), (), totals)


def first_of_window(source: Source, now_ms: int) -> Node:
    """The key with the highest total of the window."""
    window = Window(_LONG_MS, _LONG_MS, now_ms % _LONG_MS)
    totals = grouped(source, window, (Column("key", AttributeRef("key")),), _TOTAL)
    order = (OrderKey(AttributeRef("total"), descending=True),)
    now = Moving(totals, MovingWindow(range_ms=0))
    first = Ranked(now, (AttributeRef(WINDOW_END),), order, 1, "rn")
    names = ("key", "total", "rn")
    return Project(
        ToStream(first, Change.RSTREAM), tuple(Column(name, AttributeRef(name)) for name in names)
    )


OPEN: dict[str, tuple[Callable[[Source, int], Node], list[tuple[object, ...]]]] = {
    "session": (
        lambda source, _: grouped(source, SessionWindow(_LONG_MS), (), _SUMS),
        [(5, 12)],
    ),
    "window of windows": (over_windows, [(12,)]),
    "different values": (
        lambda source, now_ms: grouped(
            source, Window(_LONG_MS, _LONG_MS, now_ms % _LONG_MS), (), _DIFFERENT
        ),
        [(5, 2, 0, 5)],
    ),
    "first of a window": (first_of_window, [("x", 12, 1)]),
    "left join": (
        partial(paired, JoinKind.LEFT),
        [(0, None), (1, 4), (1, 5), (2, 4), (2, 5)],
    ),
    "semi join": (partial(paired, JoinKind.SEMI), [(1,), (2,)]),
    "tuples with their window": (with_window, [(1, 0), (4, 1), (4, 2), (4, 4), (4, 5)]),
    "window over pairs": (over_pairs, [(4, 18)]),
    "anti join": (partial(paired, JoinKind.ANTI), [(0,)]),
    # The first rows of the match, and the key that it is not about, are in the state only.
    "pattern": (rising, [(1, 5, 2), (2, 5, 4), (4, 5, 5), (5, 5, None)]),
}
_BEFORE, _AFTER = (("y", 0), ("x", 1), ("x", 2)), (("x", 4), ("x", 5))


@pytest.mark.long
def test_what_is_open_outlives_a_crash(plane: Plane) -> None:
    """All at once: each waits for the end of its window."""
    stream = plane.stream(0)
    stream = replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))
    source, mine = Source(stream.relation), Clearance(Label.of(0).bits)
    plane.start(IngestRun("ingest-1", (stream,)))
    begin_ms = int(time.time() * 1_000)
    send_now(plane, stream, *_BEFORE)
    queries = {name: plane.query(make(source, begin_ms), mine) for name, (make, _) in OPEN.items()}
    for running in [plane.start(query) for query in queries.values()]:
        await_state(running)
        plane.break_off(running)
    send_now(plane, stream, *_AFTER)
    again = {name: plane.start(query) for name, query in queries.items()}
    shown = {}
    for name, query in queries.items():
        wanted = OPEN[name][1]
        after = plane.read(query.classes[0].topic, len(wanted), timeout_s=_WAIT_S + _LONG_MS / 500)
        pairs = zip(after, values(after), strict=True)
        found = {dict(headers(each))["id"]: value for each, value in pairs}
        shown[name] = sorted(map(without_edges, found.values()), key=str)
    assert shown == {name: wanted for name, (_, wanted) in OPEN.items()}
    for running in again.values():
        states = [state for each in running.recentProgress for state in each.stateOperators]
        assert sum(state.numRowsDroppedByWatermark for state in states) == 0


def send_now(plane: Plane, stream: IngestStream, *pairs: tuple[str, int]) -> None:
    """Send tuples of now, a millisecond apart: keys with prices."""
    now = time.time() - _ZERO_S
    plane.send(stream, *(tuple_at(now + price / 1_000, key, price) for key, price in pairs))


def await_state(running: StreamingQuery) -> None:
    """Wait until the query keeps something as state."""
    deadline = time.monotonic() + _WAIT_S
    while not any(s.numRowsTotal for each in running.recentProgress for s in each.stateOperators):
        assert time.monotonic() < deadline, "the query reads nothing"
        time.sleep(0.1)


def without_edges(value: dict[str, object]) -> tuple[object, ...]:
    return tuple(each for key, each in value.items() if key not in {WINDOW_START, WINDOW_END})


def test_upserts_and_deletions_have_keys_and_versions_and_outlive_a_crash(plane: Plane) -> None:
    stream = plane.stream(0)
    stream = replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))
    whole = Aggregate(
        Moving(Source(stream.relation), MovingWindow()),
        (Column("key", AttributeRef("key")),),
        _SUMS,
    )
    recent = replace(whole, input=Moving(Source(stream.relation), MovingWindow(range_ms=500)))
    mine = Clearance(Label.of(0).bits)
    totals, passing = (plane.query(ToStream(each, Change.UPSERT), mine) for each in (whole, recent))
    plane.start(IngestRun("ingest-1", (stream,)))
    running = plane.start(totals)
    plane.start(passing)
    send(plane, stream, 1, 2)
    await_newest(plane, totals, lambda newest: counted(newest) == 2)
    plane.break_off(running)
    send(plane, stream, 3)
    plane.start(totals)
    newest = await_newest(plane, totals, lambda newest: counted(newest) == 3)
    assert json.loads(newest.key() or b"") == {"key": "x"}
    (value,) = values([newest])
    assert (value["deleted"], value["n"], value["total"]) == (False, 3, 6), "the totals went on"
    # The window of time is empty in the end: its group is taken back by a tombstone.
    last = await_newest(plane, passing, lambda newest: newest.value() is None)
    assert json.loads(last.key() or b"") == {"key": "x"}
    assert set(dict(headers(last))) == {"label", "id", "row-version"}


_NESTED = """
    SELECT a.n AS sent, count(*) AS keys, sum(b.n) AS quoted
    FROM (SELECT key, count(*) AS n FROM orders GROUP BY key) AS a
    JOIN (SELECT key, count(*) AS n FROM quotes GROUP BY key) AS b ON a.key = b.key
    GROUP BY a.n"""


@pytest.mark.long
def test_a_group_over_a_join_of_groups_outlives_a_crash(plane: Plane) -> None:
    """A key that is sent once more goes to another group, and its old one has none any more."""
    orders, quotes = (
        replace(each, relation=replace(each.relation, time=TimeSource.BROKER))
        for each in (plane.stream(0), plane.stream(1))
    )
    relations = {"orders": orders.relation, "quotes": quotes.relation}

    class Both:
        def relation(self, name: str) -> Relation:
            return relations[name]

    query = plane.query(
        parse_sql(_NESTED, Both()), Clearance(Label.of(0, 1).bits), Clearance(Label.of(0).bits)
    )
    topic = query.classes[0].topic
    plane.start(IngestRun("ingest-1", (orders, quotes)))
    running = plane.start(query)
    send_now(plane, orders, ("x", 1), ("y", 2))
    send_now(plane, quotes, ("x", 3), ("y", 4), ("y", 5))
    plane.read_until(topic, lambda found: standing(found) == {1: (2, 3)}, timeout_s=_WAIT_S)
    plane.break_off(running)
    send_now(plane, orders, ("x", 6))
    running = plane.start(query)
    plane.read_until(
        topic, lambda found: standing(found) == {1: (1, 2), 2: (1, 1)}, timeout_s=_WAIT_S
    )
    plane.break_off(running)
    send_now(plane, orders, ("y", 7))
    plane.start(query)
    last = plane.read_until(
        topic, lambda found: standing(found) == {1: None, 2: (2, 3)}, timeout_s=_WAIT_S
    )
    assert {dict(headers(each))["label"] for each in last} == {Label.of(0, 1).to_wire()}
    # All of it reveals both streams.
    assert plane.read(query.classes[1].topic, 0, timeout_s=1.0) == []


def standing(upserts: list[Message]) -> dict[int, tuple[object, object] | None]:
    """The newest row of each key: keys and quotes. None: it was taken back."""
    rows = {}
    for each in sorted(upserts, key=lambda each: int(dict(headers(each))["row-version"])):
        (value,) = values([each])
        shown = (value["keys"], value["quoted"]) if each.value() is not None else None
        rows[json.loads(each.key() or b"")["sent"]] = shown
    return rows
