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
    Moving,
    MovingWindow,
    Node,
    Plan,
    Project,
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


NEWEST = Moving(SOURCE, newest_of_each(["symbol"]))
SHOWN = Project(
    Filter(NEWEST, call(">", ref("size"), ONE)),
    (Column("n", ref("size")), Column("s", ref("symbol"))),
)
OUTPUT = output_relation(9, "totals", checked(ToStream(GROUPS, Change.UPSERT)))


@pytest.mark.parametrize(
    ("relation", "keys"),
    [(GROUPS, ("symbol",)), (RENAMED, ("s",)), (SHOWN, ("s",))],
)
def test_keys_and_attributes(relation: Node, keys: tuple[str, ...]) -> None:
    plan = checked(upserts(relation))
    assert upsert_keys(plan.plan) == keys
    first, second, *others = plan.schema.attributes
    assert (first.name, second.name, second.type) == ("instant", "deleted", Type.BOOLEAN)
    assert {each.name for each in others} == {"n", *keys}
    assert not any(each.required for each in others if each.name == "n")
    assert upsert_keys(Plan(ToStream(relation, Change.ISTREAM))) == ()


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (upserts(Moving(SOURCE, MovingWindow(rows=3))), "goes over groups"),
        (upserts(Moving(SOURCE, MovingWindow(rows=1))), "goes over groups"),
        (upserts(Moving(SOURCE, replace(NEWEST.window, rows=2))), "goes over groups"),
        (upserts(Project(NEWEST, (column("size"),))), "names the key"),
        (upserts(Aggregate(GROUPS.input, (column("symbol"),), ())), "goes over groups"),
        (upserts(Aggregate(GROUPS.input, (), (COUNT,))), "goes over groups"),
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
