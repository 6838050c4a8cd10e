"""Which operators roles allow in queries, and how large."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.errors import Denied
from catalog.operator_limits import Operator, OperatorLimits, require_allowed, uses_of
from catalog.plan import (
    Change,
    Filter,
    Join,
    Moving,
    MovingWindow,
    Node,
    Project,
    Ranked,
    SessionWindow,
    ToStream,
    Union,
    Unnest,
)
from tests.plans import grouped, whole
from tests.unit.catalog.plans import COUNT, JOINED, SOURCE, UPDATING, call, column, ref, windowed

HOUR = 3_600_000


def moving(**window: Any) -> Node:
    return ToStream(Moving(SOURCE, MovingWindow(**window)), Change.ISTREAM)


ENDLESS = moving()
SESSIONS = grouped(SOURCE, SessionWindow(1_000), (), (COUNT,))
RANKED = ToStream(Ranked(Moving(SOURCE, MovingWindow(rows=5)), (), (), 3), Change.ISTREAM)


@pytest.mark.parametrize(
    ("plan", "operators"),
    [
        (Project(Filter(SOURCE, call("is_null", ref("price"))), (column("price"),)), []),
        (Union((SOURCE, SOURCE)), ["union"]),
        (Unnest(SOURCE, call("array", ref("price")), "each"), ["unnest"]),
        (windowed(HOUR, 1_000), ["window", "aggregate"]),
        (JOINED, ["join"]),
        (RANKED, ["moving-window", "order"]),
        (UPDATING, ["window", "aggregate", "updates"]),
    ],
)
def test_operators_of_a_plan(plan: Node, operators: list[str]) -> None:
    assert [use.operator for use in uses_of(whole(plan))] == operators


@pytest.mark.parametrize("operator", Operator)
def test_every_operator_has_its_clause(operator: Operator) -> None:
    assert operator.clause


@pytest.mark.parametrize(
    ("limits", "plan", "reason"),
    [
        (OperatorLimits(frozenset({Operator.WINDOW})), windowed(10, 10), "operator aggregate"),
        (OperatorLimits(window_ms=HOUR - 1), windowed(HOUR, HOUR), "3599999 ms at most"),
        (OperatorLimits(slide_ms=1_001), windowed(HOUR, 1_000), "a slide of 1001 ms or more"),
        (OperatorLimits(windows=3), windowed(40, 10), "3 windows at once, and it takes 4"),
        (OperatorLimits(window_rows=9), moving(rows=10), "9 rows at most, and it keeps 10"),
        (OperatorLimits(window_ms=9), moving(range_ms=10), "9 ms at most"),
        (OperatorLimits(slide_ms=9), moving(range_ms=10, slide_ms=5), "a slide of 9 ms"),
        (OperatorLimits(window_ms=9), ENDLESS, "no window without an end"),
        (OperatorLimits(window_rows=9), ENDLESS, "no window without an end"),
        (OperatorLimits(window_ms=HOUR), SESSIONS, "no window without an end"),
        (OperatorLimits(slide_ms=1_001), SESSIONS, "a slide of 1001 ms or more"),
        (OperatorLimits(window_ms=4), Join(SOURCE, SOURCE, (), -5, 3), "for 5 ms"),
    ],
)
def test_what_a_role_does_not_allow(limits: OperatorLimits, plan: Node, reason: str) -> None:
    with pytest.raises(Denied, match=reason) as refused:
        require_allowed(whole(plan), {"ANALYST": limits})
    assert "the role ANALYST" in refused.value.detail
    require_allowed(whole(plan), {"ANALYST": OperatorLimits()})


@pytest.mark.parametrize(
    ("limits", "plan"),
    [
        (OperatorLimits(window_ms=HOUR, slide_ms=1_000, windows=3_600), windowed(HOUR, 1_000)),
        (OperatorLimits(window_ms=0), moving(range_ms=0)),
        (OperatorLimits(window_ms=1), moving(rows=1_000)),
        (OperatorLimits(slide_ms=9, windows=1), ENDLESS),
        (OperatorLimits(frozenset()), SOURCE),
    ],
)
def test_a_limit_is_allowed_itself(limits: OperatorLimits, plan: Node) -> None:
    require_allowed(whole(plan), {"ANALYST": limits})


def test_each_operator_needs_one_role_that_allows_it() -> None:
    """The union of what the roles allow is a union of operators, and not of their limits."""
    short = OperatorLimits(frozenset({Operator.JOIN}), window_ms=1_000)
    long = OperatorLimits(frozenset({Operator.WINDOW, Operator.AGGREGATE}), window_ms=HOUR)
    roles = {"SHORT": short, "LONG": long}
    near = Join(SOURCE, SOURCE, (), 0, 1_000)
    far = Join(SOURCE, SOURCE, (), 0, HOUR)
    for plan in (near, windowed(HOUR, HOUR)):
        require_allowed(whole(plan), roles)
    with pytest.raises(Denied, match=r"role LONG does not allow .* role SHORT allows 1000 ms"):
        require_allowed(whole(far), roles)


def test_a_role_without_limits_allows_everything() -> None:
    nothing = OperatorLimits(frozenset())
    require_allowed(whole(JOINED), {"NOTHING": nothing, "ALL": None})
    require_allowed(whole(JOINED), {})
    with pytest.raises(Denied, match="JOIN, IN, EXISTS"):
        require_allowed(whole(JOINED), {"NOTHING": nothing})
