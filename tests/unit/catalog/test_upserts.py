"""Upserts: which plans give them, with which keys, and that they are a whole query."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.errors import InvalidInput
from catalog.output_relation import output_relation
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    OrderKey,
    Plan,
    Project,
    Ranked,
    Source,
    ToStream,
    Union,
    Window,
)
from catalog.schema import Type
from catalog.time_source import TimeSource
from catalog.upserts import newest_of_each, upsert_keys, usually_upserts
from tests.plans import checked, grouped
from tests.unit.catalog.plans import COUNT, ONE, SOURCE, call, column, ref

GROUPS = Aggregate(Moving(SOURCE, MovingWindow(rows=3)), (column("symbol"),), (COUNT,))
RENAMED = Project(GROUPS, (Column("n", ref("n")), Column("s", ref("symbol"))))


def upserts(relation: Node) -> ToStream:
    return ToStream(relation, Change.UPSERT)


FIRST = Ranked(GROUPS, (), (OrderKey(ref("n")),), 3)


def named(alias: str) -> Node:
    """Groups by `symbol` whose names begin with an alias."""
    columns = (Column(f"{alias}_{name}", ref(name)) for name in ("symbol", "n"))
    return Project(GROUPS, tuple(columns))


def join(kind: JoinKind, right: str = "symbol") -> MovingJoin:
    """A join of two groups that compares the key of the left one, or its count."""
    left = "symbol" if right == "symbol" else "n"
    equal = ((ref(f"a_{left}"), ref(f"b_{right}")),)
    return MovingJoin(named("a"), named("b"), equal, None, kind)


NEWEST = Moving(SOURCE, newest_of_each(["symbol"]))
SHOWN = Project(
    Filter(NEWEST, call(">", ref("size"), ONE)),
    (Column("n", ref("size")), Column("s", ref("symbol"))),
)
OUTPUT = output_relation(9, "totals", checked(ToStream(GROUPS, Change.UPSERT)))


@pytest.mark.parametrize(
    ("relation", "keys"),
    [
        (GROUPS, ("symbol",)),
        (RENAMED, ("s",)),
        (SHOWN, ("s",)),
        (Aggregate(GROUPS, (column("n"),), (Aggregation("m", "count", None),)), ("n",)),
        # The rows of an order are those of the groups, or the places.
        (FIRST, ("symbol",)),
        (replace(FIRST, number="rn"), ("rn",)),
        (replace(FIRST, partition=(ref("n"),), limit=1), ("n",)),
        # Each row finds one partner, whose key says nothing more.
        (join(JoinKind.INNER), ("a_symbol",)),
        (join(JoinKind.LEFT), ("a_symbol",)),
        (join(JoinKind.RIGHT), ("b_symbol",)),
        (join(JoinKind.ANTI), ("a_symbol",)),
        (join(JoinKind.INNER, "n"), ("a_symbol", "b_symbol")),
        # One of two equal attributes will do.
        (Project(join(JoinKind.INNER), (Column("s", ref("b_symbol")),)), ("s",)),
        # A relation of one row has no key of its own.
        (
            MovingJoin(
                named("a"),
                Aggregate(GROUPS, (), (Aggregation("most", "max", ref("n")),)),
                ((ref("a_n"), ref("most")),),
            ),
            ("a_symbol",),
        ),
    ],
)
def test_keys_and_attributes(relation: Node, keys: tuple[str, ...]) -> None:
    plan = checked(upserts(relation))
    assert upsert_keys(plan.plan) == keys
    first, second, *others = plan.schema.attributes
    assert (first.name, second.name, second.type) == ("instant", "deleted", Type.BOOLEAN)
    assert {each.name for each in others} >= {*keys}
    assert not any(each.required for each in others if each.name not in keys)
    assert upsert_keys(Plan(ToStream(relation, Change.ISTREAM))) == ()


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (upserts(Moving(SOURCE, MovingWindow(rows=3))), "goes over groups"),
        (upserts(Moving(SOURCE, MovingWindow(rows=1))), "has one row"),
        (upserts(Moving(SOURCE, replace(NEWEST.window, rows=2))), "goes over groups"),
        (upserts(Project(NEWEST, (column("size"),))), "names the key"),
        (upserts(Aggregate(GROUPS.input, (column("symbol"),), ())), "goes over groups"),
        (upserts(Aggregate(GROUPS.input, (), (COUNT,))), "has one row"),
        (upserts(Union((GROUPS, GROUPS))), "UNION, DISTINCT, FULL JOIN, IN and EXISTS"),
        (upserts(join(JoinKind.SEMI)), "have no key"),
        (upserts(join(JoinKind.FULL)), "have no key"),
        (upserts(Project(join(JoinKind.INNER, "n"), (column("a_n"), column("b_n")))), "everything"),
        (upserts(Project(GROUPS, (Column("n", ref("n")),))), "names everything of GROUP BY"),
        (
            upserts(
                Aggregate(
                    GROUPS.input, (column("symbol"),), (Aggregation("deleted", "count", None),)
                )
            ),
            "rename yours",
        ),
        (Filter(upserts(GROUPS), call("is_null", ref("n"))), "a whole query"),
        (Project(upserts(GROUPS), (column("n"),)), "a whole query"),
    ],
)
def test_what_gives_no_upserts(plan: Node, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        checked(plan)


def test_what_gives_upserts_if_nothing_is_said() -> None:
    endless = Aggregate(Moving(SOURCE, MovingWindow()), (column("symbol"),), (COUNT,))
    assert usually_upserts(endless)
    assert usually_upserts(Project(endless, (column("symbol"),)))
    for other in (GROUPS, Aggregate(endless.input, (), (COUNT,)), endless.input, NEWEST):
        assert not usually_upserts(other)
    rows = Moving(Source(OUTPUT), newest_of_each(OUTPUT.keys))
    by_number = Aggregate(rows, (column("n"),), (Aggregation("m", "count", None),))
    for relation in (rows, Filter(rows, call(">", ref("n"), ONE)), by_number):
        assert usually_upserts(relation)
    assert not usually_upserts(Project(rows, (column("n"),)))
    assert not usually_upserts(replace(by_number, keys=()))


def test_an_output_of_upserts_is_a_relation_with_their_key() -> None:
    assert OUTPUT.keys == ("symbol",)
    assert OUTPUT.event_time == "instant"
    # Ticks go on behind it if they move all that it reads.
    assert OUTPUT.time is TimeSource.DATA
    ticked = Source(replace(SOURCE.relation, time=TimeSource.BROKER))
    groups = replace(GROUPS, input=Moving(ticked, MovingWindow()))
    assert output_relation(9, "t", checked(upserts(groups))).time is TimeSource.BROKER
    plain = output_relation(9, "t", checked(ToStream(groups, Change.ISTREAM)))
    assert plain.keys == ()


@pytest.mark.parametrize(
    "plan",
    [
        Source(OUTPUT),
        Filter(Source(OUTPUT), call("is_null", ref("n"))),
        Union((Source(OUTPUT), Source(OUTPUT))),
        grouped(Source(OUTPUT), Window(1_000, 1_000), (), (COUNT,)),
        *(
            ToStream(Moving(Source(OUTPUT), window), Change.ISTREAM)
            for window in (
                MovingWindow(),
                MovingWindow(rows=1),
                MovingWindow(rows=2, partition=(ref("symbol"),)),
                MovingWindow(rows=1, partition=(ref("n"),)),
                MovingWindow(range_ms=0),
            )
        ),
        ToStream(
            Moving(Filter(Source(OUTPUT), call("is_null", ref("n"))), newest_of_each(["symbol"])),
            Change.ISTREAM,
        ),
    ],
)
def test_single_upserts_are_read_by_nothing(plan: Node) -> None:
    with pytest.raises(InvalidInput, match=r"totals \[PARTITION BY symbol ROWS 1\]"):
        checked(plan)
