"""The canonical form: what means the same has one form, and one form means the same.

`DIFFERENTIAL_SEED` is the first seed, as in `test_generated.py`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from random import Random

import pytest

from catalog.analysis import analyse
from catalog.canonical import canonical_form, sharing_key
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.plan import Column, Filter, Node, Plan, Project, Source, Union
from catalog.plan_check import MAX_DEPTH
from catalog.schema import Type
from secadmin.languages import parse_sql
from tests.differential.case import Case
from tests.differential.comparing import check
from tests.differential.expected import expected
from tests.differential.make_case import make_case, make_matching_case, make_moving_case
from tests.differential.market import RELATIONS, Market
from tests.differential.rewriting import changed, rewritten
from tests.lanes import number_of

_CASES = number_of("CANONICAL_CASES", sample=8, long=1_000)
_FIRST = int(os.environ.get("DIFFERENTIAL_SEED", "0"))
_SEEDS = range(_FIRST, _FIRST + _CASES)
_MADE = {"plans": make_case, "moving": make_moving_case, "matching": make_matching_case}
_CHANGES = 5

EQUAL = {
    "order and repetition of conditions": (
        "SELECT ts, price FROM trades WHERE price > 1 AND symbol = 'A'",
        "SELECT ts, price FROM trades WHERE symbol = 'A' AND price > 1 AND symbol = 'A'",
        "SELECT ts, price FROM trades WHERE 'A' = symbol AND 1 < price",
        "SELECT t.ts, t.price FROM trades t WHERE t.price > 1 AND t.symbol = 'A'",
        "SELECT ts, price FROM (SELECT * FROM trades WHERE price > 1) t WHERE symbol = 'A'",
    ),
    "or and sums": (
        "SELECT ts, price + volume AS n FROM trades WHERE price > 1 OR volume > 2",
        "SELECT ts, volume + price AS n FROM trades WHERE volume > 2 OR 1 < price",
    ),
    "branches": (
        "SELECT ts FROM trades UNION ALL SELECT ts FROM news",
        "SELECT ts FROM news UNION ALL SELECT ts FROM trades",
    ),
}
DIFFERENT = {
    "column": ("SELECT ts, price FROM trades", "SELECT ts, volume FROM trades"),
    "order of columns": ("SELECT ts, price FROM trades", "SELECT price, ts FROM trades"),
    "name of a column": ("SELECT ts, price FROM trades", "SELECT ts, price AS p FROM trades"),
    "stream": ("SELECT ts FROM trades", 'SELECT ts FROM "trades-eu"'),
    "condition": ("SELECT ts FROM trades WHERE price > 1", "SELECT ts FROM trades WHERE price < 1"),
    "sides of a difference": (
        "SELECT ts, price - volume AS n FROM trades",
        "SELECT ts, volume - price AS n FROM trades",
    ),
    "type of a constant": (
        "SELECT ts, volume + 1 AS n FROM trades",
        "SELECT ts, volume + 1.0 AS n FROM trades",
    ),
    "and, or": (
        "SELECT ts FROM trades WHERE price > 1 AND volume > 2",
        "SELECT ts FROM trades WHERE price > 1 OR volume > 2",
    ),
    "branches": (
        "SELECT ts FROM trades UNION ALL SELECT ts FROM trades",
        "SELECT ts FROM trades",
    ),
    "emission": (
        "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
        "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE) EMIT UPDATES",
    ),
}


def form(text: str) -> str:
    return canonical_form(parse_sql(text, Market()))


@pytest.mark.parametrize("name", EQUAL)
def test_what_no_result_depends_on_makes_no_other_form(name: str) -> None:
    assert len({form(text) for text in EQUAL[name]}) == 1


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_a_result_depends_on_makes_another_form(name: str) -> None:
    assert all(form(one) != form(other) for one, other in pairwise(DIFFERENT[name]))


def test_no_field_of_a_plan_is_left_out() -> None:
    """The form writes these classes in its own way. A new field of them must come into it."""
    known = {Filter: {"input", "condition"}, Union: {"inputs"}}
    known[Call] = {"function", "arguments", "position"}
    assert {each: {field.name for field in fields(each)} for each in known} == known


def test_the_deepest_plan_has_a_form() -> None:
    node: Node = Source(RELATIONS["trades"])
    for _ in range(MAX_DEPTH - 2):
        node = Project(node, (Column("n", AttributeRef("volume")), Column("volume", _ONE)))
    deep: Expression = _ONE
    for _ in range(100):
        deep = Call("negate", (deep,))
    plan = analyse(Plan(Filter(node, Call("=", (deep, _ONE)))))
    assert canonical_form(plan).count("Project") == MAX_DEPTH - 2


_ONE = Literal(1, Type.BIGINT)


def test_a_query_shares_only_at_its_level_and_without_state() -> None:
    plan = parse_sql("SELECT ts FROM trades", Market())
    keys = {sharing_key(plan, level) for level in (None, Label(), Label.of(1), Label.of(2))}
    assert len(keys) == 4 and "" not in keys
    counting = "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    assert sharing_key(parse_sql(counting, Market()), None) == ""


@pytest.mark.parametrize("kind", _MADE)
def test_another_order_gives_one_form_and_the_same_results(kind: str) -> None:
    met: Counter[str] = Counter()
    for seed in _SEEDS:
        case, random = _MADE[kind](seed), Random(seed)
        plan = rewritten(random, case.plan)
        one, other = analyse(case.plan), analyse(plan)
        met["rewritten"] += plan != case.plan
        if (one.schema, one.event_time) == (other.schema, other.event_time):
            assert canonical_form(one) == canonical_form(other), case.name
            met["equal"] += 1
            check(case, expected(replace(case, plan=plan)))
        else:
            # The order of branches or sides shows in the attributes, so it counts.
            assert canonical_form(one) != canonical_form(other), case.name
    assert min(met["rewritten"], met["equal"]) > _CASES // 4, met


@pytest.mark.parametrize("kind", _MADE)
def test_what_gives_other_results_has_another_form(kind: str) -> None:
    differing = 0
    for seed in _SEEDS:
        differing += _differing(_MADE[kind], seed)
    assert differing > _CASES // 4, "the changes change something"


def _differing(make: Callable[[int], Case], seed: int) -> int:
    """How many of some changes of a case's plan give other results. Their forms must differ."""
    case, found = make(seed), 0
    ways = list(changed(case.plan.root))
    for root in Random(seed).sample(ways, min(_CHANGES, len(ways))):
        plan = Plan(root)
        try:
            other = analyse(plan)
        except InvalidInput:
            continue
        same_form = canonical_form(other) == canonical_form(analyse(case.plan))
        if other.schema == analyse(case.plan).schema:
            outcome = expected(replace(case, plan=plan))
            try:
                check(case, outcome)
            except AssertionError:
                found += 1
                assert not same_form, f"{case.name}: {root}"
        else:
            assert not same_form, f"{case.name}: {root}"
    return found
