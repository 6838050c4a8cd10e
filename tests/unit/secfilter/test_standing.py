"""Who gets the rows that stand: who is new, and everybody before its topic drops them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.placement import Placement
from catalog.plan import Aggregate, Change, Moving, MovingWindow, Source, ToStream
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun
from catalog.time_source import TimeSource
from catalog.topics import LABELLED_RETENTION_MS
from secfilter.standing import Kept, Receiver, Receivers, receivers_of
from tests.plans import whole
from tests.unit.catalog.plans import COUNT, SOURCE, column

DAY_MS = 86_400_000
BY_TICKS = replace(SOURCE.relation, time=TimeSource.BROKER)
GROUPS = Aggregate(Moving(Source(BY_TICKS), MovingWindow()), (column("symbol"),), (COUNT,))
OUTPUT = Relation(
    *(9, "totals", RelationKind.OUTPUT, SOURCE.relation.schema, "at", 0),
    time=TimeSource.BROKER,
    keys=("symbol",),
)
CLASSES = tuple(
    FanOutClass(f"out.totals.{name}", Clearance.of(number), id=number)
    for number, name in enumerate("ab", start=1)
)


def run_of(output: FedOutput) -> QueryRun:
    sources = Label.of(3, 7)
    return QueryRun("q", whole(ToStream(GROUPS, Change.UPSERT)), (output,), sources, {})


def test_each_class_and_each_reader_is_a_receiver() -> None:
    fed = FedOutput(OUTPUT, CLASSES, True, readers=frozenset({12, 11}), kept_ms=DAY_MS)
    found = receivers_of(run_of(fed))
    assert found is not None
    half, hour = DAY_MS // 2, 3_600_000
    assert found.every == (
        Receiver("out.totals.a", ("out.totals.a",), half),
        Receiver("out.totals.b", ("out.totals.b",), half),
        Receiver("lab.totals 11", ("lab.totals",), hour, 11),
        Receiver("lab.totals 12", ("lab.totals",), hour, 12),
    )
    assert hour < LABELLED_RETENTION_MS
    assert found.grow
    # A level leaves out categories of other kinds, so the mark has none.
    assert found.mark == Label.of(3)
    alone = receivers_of(run_of(replace(fed, labelled=False, readers=frozenset())))
    assert alone is not None
    assert [each.name for each in alone.every] == ["out.totals.a", "out.totals.b"]


def test_classes_with_relations_of_their_own_get_them_by_time_alone() -> None:
    run = replace(run_of(FedOutput(OUTPUT, CLASSES, kept_ms=10)), placement=Placement.SOURCES)
    found = receivers_of(run)
    assert found is not None
    assert found.every == (Receiver("views", ("out.totals.a", "out.totals.b"), 5),)
    assert not found.grow


@pytest.mark.parametrize(
    "output", [replace(OUTPUT, keys=()), replace(OUTPUT, time=TimeSource.DATA)]
)
def test_there_are_none_without_a_key_or_if_the_data_moves_time(output: Relation) -> None:
    assert receivers_of(run_of(FedOutput(output, CLASSES, kept_ms=DAY_MS))) is None


def test_what_is_kept_for_ever_is_given_once() -> None:
    found = receivers_of(run_of(FedOutput(OUTPUT, CLASSES, kept_ms=-1)))
    assert found is not None
    assert {each.every_ms for each in found.every} == {None}
    assert found.due({"out.totals.a": 0, "out.totals.b": 0}, 10**15) == ()


def test_who_is_new_gets_them_at_once_and_the_others_after_their_time() -> None:
    first, second = Receiver("a", ("x",), 100), Receiver("b", ("y",), 30)
    everybody = Receivers((first, second), grow=True)
    assert everybody.due({}, 1_000) == (first, second)
    given = everybody.given({}, 1_000)
    assert given == {"a": 1_000, "b": 1_000}
    assert everybody.due(given, 1_029) == ()
    assert everybody.due(given, 1_030) == (second,)
    given = everybody.given(given, 1_030)
    assert given == {"a": 1_000, "b": 1_030}
    # Who is away is forgotten, and is new when it comes back.
    alone = Receivers((first,), grow=True)
    assert alone.given(given, 1_050) == {"a": 1_000}
    assert everybody.due({"a": 1_000}, 1_050) == (second,)


def test_the_state_of_an_older_version_is_a_relation_alone() -> None:
    assert Kept.of(None) == Kept()
    assert Kept.of('{"form":3}') == Kept('{"form":3}')
    assert Kept.of('{"form":3}').changes_by(-(10**15)), "nobody knows when it changes"


def test_what_is_kept_is_read_again() -> None:
    kept = Kept('{"form":3}', {"a": 5}, 17)
    assert Kept.of(kept.text()) == kept
    assert kept.changes_by(17) and not kept.changes_by(16)
    assert not replace(kept, following=None).changes_by(10**18)
