"""Upserts: which plans give them, with which keys, and that they are a whole query."""

from __future__ import annotations

import pytest

from catalog.errors import InvalidInput
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
    ToStream,
)
from catalog.schema import Type
from catalog.upserts import is_unbounded_group, upsert_keys
from tests.plans import checked
from tests.unit.catalog.plans import COUNT, SOURCE, call, column, ref

GROUPS = Aggregate(Moving(SOURCE, MovingWindow(rows=3)), (column("symbol"),), (COUNT,))
RENAMED = Project(GROUPS, (Column("n", ref("n")), Column("s", ref("symbol"))))


def upserts(relation: Node) -> ToStream:
    return ToStream(relation, Change.UPSERT)


@pytest.mark.parametrize(("relation", "keys"), [(GROUPS, ("symbol",)), (RENAMED, ("s",))])
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


def test_groups_of_a_window_without_an_end() -> None:
    endless = Aggregate(Moving(SOURCE, MovingWindow()), (column("symbol"),), (COUNT,))
    assert is_unbounded_group(endless)
    assert is_unbounded_group(Project(endless, (column("symbol"),)))
    for other in (GROUPS, Aggregate(endless.input, (), (COUNT,)), endless.input):
        assert not is_unbounded_group(other)
