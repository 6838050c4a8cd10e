"""Which executions run together, and when a group starts again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.placement import Placement
from catalog.plan import Aggregation, Column, Filter, Node, Project, Source, Union, Window
from catalog.relation import Relation, RelationKind
from catalog.runs import common_parts, fingerprint, fused, topics_of
from catalog.schema import Attribute, Schema, Type
from secfilter.fused_plan import MOST_PARTS, fused_plan
from secfilter.fusing import (
    LONGEST_WAIT_S,
    MOST_GROUP_PARTS,
    MOST_MEMBERS,
    Able,
    Group,
    Groups,
    able,
    ranked,
    regrouped,
)
from tests.plans import grouped, whole
from tests.unit.secfilter.fusion_world import query

PREFIX = "fused-query-1"
_STREAM = Relation(
    *(1, "s", RelationKind.STREAM),
    Schema(
        (
            Attribute("t", Type.STRING),
            Attribute("n", Type.BIGINT),
            Attribute("at", Type.TIMESTAMP),
        )
    ),
    *("at", 0),
)
_SOURCE = Source(_STREAM)
_N, _T = AttributeRef("n"), AttributeRef("t")


def _number(value: int) -> Literal:
    return Literal(value, Type.BIGINT)


def _more(than: int, node: Node = _SOURCE) -> Filter:
    return Filter(node, Call(">", (_N, _number(than))))


def _sum(of: Expression, times: int) -> Expression:
    for _ in range(times):
        of = Call("+", (of, _number(1)))
    return of


def test_filters_and_projections_are_written_over_the_source() -> None:
    twice = Project(_more(1), (Column("n", Call("*", (_N, _number(2)))), Column("t", _T)))
    plan = fused_plan(whole(_more(7, twice)))
    assert plan is not None and plan.source == _SOURCE
    doubled = Call("*", (_N, _number(2)))
    assert plan.conditions == (Call(">", (_N, _number(1))), Call(">", (doubled, _number(7))))
    assert plan.values == (doubled, _T) and plan.schema.names == ("n", "t")
    bare = fused_plan(whole(_SOURCE))
    assert bare is not None and not bare.conditions
    assert bare.values == (_T, _N, AttributeRef("at"))


@pytest.mark.parametrize(
    "node",
    [
        Union((_SOURCE, _SOURCE)),
        _more(1, Union((_SOURCE, _more(2)))),
        grouped(_SOURCE, Window(10, 10), (), (Aggregation("count", "count", None),)),
        Filter(_SOURCE, Call("like", (_T, Literal("%a%", Type.STRING)))),
        Filter(_SOURCE, Call("not", (Call("ilike", (_T, Literal("a%", Type.STRING))),))),
        Project(_SOURCE, (Column("m", Call("regexp_like", (_T, Literal("a", Type.STRING)))),)),
        Project(_SOURCE, (Column("n", _sum(_N, MOST_PARTS // 2)),)),
    ],
    ids=["union", "filter-of-union", "window", "like", "ilike", "regexp", "large"],
)
def test_these_run_alone(node: Node) -> None:
    if isinstance(node, Filter | Project | Union):
        assert fused_plan(whole(node)) is None
    run = replace(query(1), plan=whole(node))
    assert able(replace(run)) is None


def test_one_that_is_isolated_runs_alone() -> None:
    assert able(query(1)) is not None
    assert able(replace(query(1), placement=Placement.APART)) is None
    assert able(replace(query(1), independent={1: {2: 3}})) is None


def test_a_key_is_the_relation_and_the_level() -> None:
    one, two = able(query(1)), able(query(2))
    assert one is not None and two is not None and one.key == two.key
    floored = able(replace(query(3), floor=Label.of(5)))
    assert floored is not None and floored.key != one.key
    other = able(replace(query(3), plan=whole(_SOURCE)))
    assert other is not None and other.key != one.key
    levels = able(replace(query(3), plan=whole(Source(_STREAM, shows_level=True))))
    assert levels is not None and levels.key != other.key


def test_levels_that_see_less_of_a_relation_have_a_key_of_their_own() -> None:
    wide, cut = query(1), replace(query(2), reaches={1: Label()})
    runs = {each.name: each for each in (cut, wide, query(3))}
    keys = {name: found for name, each in runs.items() if (found := able(each)) is not None}
    told = ranked(runs, keys)
    assert told["query-1"] == told["query-3"] == keys["query-1"]
    assert told["query-2"].key != told["query-1"].key
    assert ranked({"query-2": cut}, {"query-2": keys["query-2"]}) == {"query-2": keys["query-2"]}


def test_runs_that_read_something_else_are_not_one_run() -> None:
    one, two = query(1), query(2)
    both = fused("f", [one, two])
    assert both.outputs == (*one.outputs, *two.outputs)
    assert topics_of(both) == topics_of(one) | topics_of(two)
    assert fingerprint(both) != fingerprint(fused("f", [two, one]))
    other = replace(two, name="query-9")
    assert fingerprint(both) != fingerprint(fused("f", [one, other])), "another execution"
    for changed in (
        replace(two, reaches={1: Label.of(0, 1)}),
        replace(two, floor=Label.of(1)),
        replace(two, plan=whole(_SOURCE)),
    ):
        assert common_parts(changed) != common_parts(one)
        with pytest.raises(ValueError, match="differ in what they read"):
            fused("f", [one, changed])
    with pytest.raises(ValueError, match="differ in what they read"):
        fused("f", [replace(one, plan=whole(Union((_SOURCE, _SOURCE))))])


def known(ready: int, key: str = "k", parts: int = 1, first: int = 1) -> dict[str, Able]:
    return {f"q{n}": Able(key, parts, ready=True) for n in range(first, first + ready)}


def group(*members: str, key: str = "k", since: float = 0.0) -> Group:
    return Group(key, members, since)


def regroup(groups: Groups, able_: dict[str, Able], now: float = 10.0) -> Groups:
    return regrouped(groups, able_, PREFIX, now)


def test_two_are_enough_for_a_group() -> None:
    assert regroup({}, known(1)) == {}
    assert regroup({}, known(2)) == {f"{PREFIX}-k-1": group("q1", "q2", since=10.0)}
    assert regroup({}, {**known(1), **known(1, "j", first=2)}) == {}, "of one key"


def test_only_what_is_ready_joins() -> None:
    waiting = {name: replace(each, ready=False) for name, each in known(5).items()}
    assert regroup({}, waiting) == {}
    assert regroup({}, {**waiting, **known(1)}) == {}


def test_a_group_without_a_change_is_the_same() -> None:
    before = {"g": group("q1", "q2")}
    for ready in (True, False):
        now = {name: replace(each, ready=ready) for name, each in known(2).items()}
        assert regroup(before, now)["g"] is before["g"]


@pytest.mark.parametrize(
    "left", [{}, {"q2": Able("other", 1)}, {"q2": Able("k", 1, steady=False, ready=True)}]
)
def test_what_is_gone_or_changed_leaves(left: dict[str, Able]) -> None:
    before = {"g": group("q1", "q2", "q3")}
    found = regroup(before, {**known(1), **known(1, first=3), **left})
    assert found == {"g": group("q1", "q3", since=10.0)}
    assert regroup({"g": group("q1", "q2")}, {**known(1), **left}) == {}, "one is no group"


def test_a_few_newcomers_wait_until_the_group_starts_again() -> None:
    before = {"g": group(*known(10))}
    assert regroup(before, known(12))["g"] is before["g"], "less than a quarter"
    assert set(regroup(before, known(13))["g"].members) == set(known(13))
    late = regroup(before, known(11), LONGEST_WAIT_S)
    assert set(late["g"].members) == set(known(11)), "it has waited for long enough"
    without = known(12)
    del without["q1"]
    assert set(regroup(before, without)["g"].members) == set(without), "it starts again anyway"


def test_those_that_are_ready_wait_a_moment_for_those_that_are_soon() -> None:
    (soon,) = known(1, first=9).values()
    soon = replace(soon, ready=False, soon=True)
    more = {**known(2), "q9": soon}
    assert regroup({}, more) == {}, "one start takes all three"
    assert set(regroup({}, {**more, "q9": replace(soon, key="other")})) == {f"{PREFIX}-k-1"}
    waited = {**more, "q1": replace(more["q1"], waited=True)}
    assert set(regroup({}, waited)[f"{PREFIX}-k-1"].members) == {"q1", "q2"}
    before = {"g": group("q1", "q2")}
    joining = {**known(3), "q9": soon}
    assert regroup(before, joining)["g"] is before["g"]
    del joining["q2"]
    assert regroup(before, joining)["g"].members == ("q1", "q3"), "it starts again anyway"
    carried = {"g": group("q1", "q2", "q9")}
    found = regroup(carried, {**known(4), "q9": soon})
    assert set(found["g"].members) == {"q1", "q2", "q3", "q4", "q9"}, "it is in the group already"


def test_a_group_has_bounds() -> None:
    found = regroup({}, known(MOST_MEMBERS + 2))
    assert sorted(len(each.members) for each in found.values()) == [2, MOST_MEMBERS]
    large = MOST_GROUP_PARTS // 2
    found = regroup({}, known(5, parts=large))
    assert [len(each.members) for each in found.values()] == [2, 2], "the fifth runs alone"
    full = {"g": group("q1", "q2")}
    found = regroup(full, known(4, parts=large))
    assert found["g"] is full["g"] and len(found) == 2


def test_who_waits_for_a_group_begins_no_other_one() -> None:
    before = {"g": group(*known(10))}
    assert regroup(before, known(12)) == before
