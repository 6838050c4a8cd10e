"""Queries over role expressions against the three stages of paper 000, on Spark.

`strong` is the cumulative approach, `view` has windows that are partitioned by the roles of a user,
and `exact` is exact match: a partition for each role. `tests/unit/oracle/test_three_stages.py` has
many more cases, without Spark. ROLE_SET_CASES sets how many random queries there are.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence, Set
from datetime import timedelta
from itertools import chain

import pytest
from pyspark.sql import SparkSession

from catalog.label import Label
from catalog.role_expression import RoleExpression, read_role_expression
from secadmin.languages import parse_sql
from tests.differential.case import Outcome
from tests.differential.conftest import interpreting
from tests.differential.engine import run_cases
from tests.differential.market import NOON
from tests.differential.named_streams import NamedStreams
from tests.differential.ward import (
    HEART,
    PAPER,
    POLICIES,
    PRESSURE,
    STAGES,
    STREAMS,
    USERS,
    Given,
    Told,
    by_the_paper,
    case_of,
    of_one_size,
    query,
    records,
)
from tests.lanes import number_of
from tests.oracle import role_sets
from tests.oracle.plans import run
from tests.oracle.values import Tuple, Value

NUMBER = number_of("ROLE_SET_CASES", sample=4, long=500)
SEED = number_of("ROLE_SET_SEED", sample=1, long=1)


def all_told() -> dict[str, Told]:
    chance = random.Random(SEED)
    told = {name: Told(text, records(chance, 12)) for name, text in PAPER.items()}
    for number in range(NUMBER):
        told[f"{SEED}-{number}"] = Told(query(chance), records(chance, chance.randint(3, 9)))
    return told


TOLD = all_told()


EACH = [(name, semantics) for name in TOLD for semantics in STAGES]


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[tuple[str, str], Outcome]:
    """What all queries give with each semantics, from few jobs."""
    cases = [case_of(name, TOLD[name], semantics) for name, semantics in EACH]
    found: list[Outcome] = []
    with interpreting(spark):
        for start in range(0, len(cases), 50):
            found += run_cases(spark, cases[start : start + 50])
    return dict(zip(EACH, found, strict=True))


@pytest.mark.parametrize(("name", "semantics"), EACH)
def test_each_user_gets_what_the_paper_says(
    outcomes: dict[tuple[str, str], Outcome], name: str, semantics: str
) -> None:
    delivered = outcomes[name, semantics].delivered
    for active, got in zip(USERS, delivered, strict=True):
        wanted = by_the_paper(TOLD[name], active, semantics)
        assert Counter(_rounded(each.values) for each in got) == Counter(
            _rounded(each) for each in wanted.elements()
        ), (active, TOLD[name])


def _rounded(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(round(each, 6) if isinstance(each, float) else each for each in values)


def test_the_cases_tell_the_semantics_apart() -> None:
    differing = {
        other: {
            name
            for name, semantics in EACH
            if semantics == other
            and any(
                by_the_paper(TOLD[name], active, "strong")
                != by_the_paper(TOLD[name], active, other)
                for active in USERS
            )
        }
        for other in ("view", "exact")
    }
    assert len(differing["view"]) > len(TOLD) // 4
    assert {"pairs", "join", "CQ1"} <= differing["exact"]


def test_windows_with_one_size_for_the_entire_set_of_tuples(spark: SparkSession) -> None:
    """§5.2.1: hidden tuples take places, and what they hold changes nothing.

    With one role, exact match is the view of this role.
    """
    chance = random.Random(SEED)
    text = "SELECT RSTREAM patID, pulseRate FROM HRStr [ROWS 3 OF ALL]"
    told = Told(text, records(chance, 12))
    nurse = frozenset({"nurse"})
    hidden = {by for by, allowed in POLICIES.items() if not role_sets.satisfies(nurse, allowed)}
    others: Given = {
        of: [((at, 9, 0) if by in hidden else (at, *rest), by) for (at, *rest), by in rows]
        for of, rows in told.given.items()
    }
    assert others != told.given
    cases = [case_of("all", told, semantics) for semantics in ("view", "exact")]
    cases.append(case_of("others", Told(text, others), "view"))
    with interpreting(spark):
        by_view, by_role, of_others = (each.delivered for each in run_cases(spark, cases))
    for active, viewed, exact in zip(USERS, by_view, by_role, strict=True):
        wanted = of_one_size(told, 3, active)
        assert Counter(each.values for each in viewed) == wanted
        if len(active) == 1:
            assert Counter(each.values for each in exact) == wanted
    assert of_others[USERS.index(nurse)] == by_view[USERS.index(nurse)]


def test_permissions_of_figure_8() -> None:
    """Sets of alternatives and the platform's conjunctive form mean the same, also combined."""
    for one, two in [(one, two) for one in POLICIES for two in POLICIES]:
        sets = role_sets.cumulative([POLICIES[one], POLICIES[two]])
        both = read_role_expression(one) & read_role_expression(two)
        assert isinstance(both, RoleExpression)
        for active in USERS:
            assert role_sets.satisfies(active, sets) == both.allows(active)
        assert {*chain(*sets)} == {*both.roles}, "no role is left that decides nothing"


def test_exact_match_pairs_no_tuples_of_two_roles() -> None:
    """The example of §5.2.1: windows of one tuple, and which pairs each approach makes."""
    second = timedelta(seconds=30)
    heart = [((NOON, 1, 85), "R1"), ((NOON + second, 1, 84), "R2")]
    pressure = [((NOON + second * at, 1, 130 + at), of) for at, of in enumerate(("R2", "R1", "R2"))]
    elements: list[tuple[tuple[Value, ...], role_sets.Allowed]] = []
    for of, several in (("h", heart), ("b", pressure)):
        elements += [((of, *values), frozenset({frozenset({role})})) for values, role in several]
    everything = Label.of(*range(len(elements)))

    def pairs(
        routed: Sequence[tuple[int, tuple[Value, ...]]],
    ) -> Sequence[tuple[tuple[Value, ...], Set[int]]]:
        plan = parse_sql(PAPER["join"], NamedStreams(STREAMS)).plan
        tables: dict[str, list[Tuple]] = {name: [] for name in STREAMS}
        for number, (of, *values) in routed:
            name = HEART.name if of == "h" else PRESSURE.name
            tables[name].append(Tuple(tuple(values), Label.of(number)))
        found = run(plan.root, tables, lambda _: everything)
        return [(each.values[1:], {*(each.label or Label()).categories()}) for each in found]

    both = {"R1", "R2"}
    exact = role_sets.exact_match(elements, pairs, both)
    assert sorted(exact, key=str) == [(84, 130), (84, 132), (85, 131)]
    # A view of both roles has one window for both, so it pairs across them, as the cumulative
    # approach does.
    seen = role_sets.partitioned(elements, pairs, both)
    assert (85, 130) in seen and (84, 131) in seen
    assert sorted(seen, key=str) == sorted(
        role_sets.cumulative_approach(elements, pairs, both), key=str
    )
    for role in both:
        alone = role_sets.partitioned(elements, pairs, {role})
        assert sorted(alone, key=str) == sorted(
            role_sets.exact_match(elements, pairs, {role}), key=str
        )
