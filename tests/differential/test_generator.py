"""What the generated cases are worth: the sample has each kind of plan and of delivery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from catalog.aggregates import FIRST, LAST
from catalog.pattern import SkipTo
from catalog.plan import (
    Aggregate,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    Node,
    Plan,
    Ranked,
    SessionWindow,
    ToStream,
    Windowed,
    walk,
)
from catalog.plan_check import distinct_arguments
from tests.differential.case import Case, Outcome
from tests.differential.expected import expected
from tests.differential.make_case import (
    SAMPLE,
    SAMPLE_MATCHING,
    SAMPLE_MIXED,
    SAMPLE_MOVING,
    make_case,
    make_matching_case,
    make_mixed_case,
    make_moving_case,
)
from tests.differential.make_records import AGGREGATED
from tests.oracle.delivery import deliver_strong
from tests.oracle.values import Tuple

_SEEDS = range(SAMPLE)
# In how many of these cases at least: about two thirds of what there is.
_LEAST = {
    "Source": SAMPLE,
    "Filter": 12,
    "Project": 22,
    "Union": 10,
    "Aggregate": 8,
    "Join": 10,
    "hopping window": 2,
    "session window": 2,
    "window of windows": 2,
    "several kinds of COUNT(DISTINCT)": 1,
    "FIRST or LAST": 3,
    "condition of a join": 4,
    **{f"{kind} join": 1 for kind in JoinKind},
    "results": 22,
    "results of an aggregate": 8,
    "results of a join": 5,
    "lowered result": 3,
    "label of several categories": 14,
    "classes that get different results": 11,
    "a class that gets some results and not others": 12,
    "results that only weak delivery gives": 5,
    "results of a difference class, and others that it leaves out": 4,
}


# The same of the cases of windows and joins over each other.
_LEAST_MIXED: dict[str, int] = {
    "join over a window": 2,
    "join of two windows": 1,
    "join over a join": 2,
    "window over a join": 2,
    "window of windows": 3,
    "results": 5,
    "results of a join": 3,
    "label of several categories": 5,
    "a class that gets some results and not others": 2,
}


@pytest.fixture(scope="module")
def mixed_counts() -> Counter[str]:
    """In how many cases of windows and joins over each other each trait is found."""
    seeds = range(SAMPLE_MIXED)
    return Counter(trait for seed in seeds for trait in _traits(make_mixed_case(seed)))


@pytest.mark.parametrize("trait", _LEAST_MIXED)
def test_enough_cases_of_windows_and_joins_have(mixed_counts: Counter[str], trait: str) -> None:
    assert mixed_counts[trait] >= _LEAST_MIXED[trait], mixed_counts


# The same of the cases of moving windows.
_LEAST_MOVING: dict[str, int] = {
    "ToStream": SAMPLE_MOVING,
    "MovingJoin": 13,
    "condition of a join of moving windows": 6,
    "join of three moving windows": 4,
    "left join of moving windows": 2,
    "anti join of moving windows": 2,
    "Ranked": 2,
    "window of tuples": 4,
    "window with one size for all tuples": 2,
    "groups": 3,
    "groups or an order below others": 4,
    "distinct": 4,
    **dict.fromkeys(("istream", "dstream", "rstream"), 4),
    "upsert": 1,
    "results": 15,
    "results of a join": 4,
    "label of several categories": 10,
    "a class that gets some results and not others": 8,
}


@pytest.fixture(scope="module")
def moving_counts() -> Counter[str]:
    """In how many cases of moving windows each trait is found."""
    seeds = range(SAMPLE_MOVING)
    return Counter(trait for seed in seeds for trait in _traits(make_moving_case(seed)))


@pytest.mark.parametrize("trait", _LEAST_MOVING)
def test_enough_cases_of_moving_windows_have(moving_counts: Counter[str], trait: str) -> None:
    assert moving_counts[trait] >= _LEAST_MOVING[trait], moving_counts


# The same of the cases of event patterns.
_LEAST_MATCHING: dict[str, int] = {
    "Match": SAMPLE_MATCHING,
    "conditions": 9,
    "conditions that read other rows": 6,
    "partitions": 3,
    "results for each row": 5,
    "values of later rows": 1,
    **dict.fromkeys(map(str, SkipTo), 3),
    "results": 7,
    "label of several categories": 2,
    "a class that gets some results and not others": 2,
}


@pytest.fixture(scope="module")
def matching_counts() -> Counter[str]:
    """In how many cases of event patterns each trait is found."""
    seeds = range(SAMPLE_MATCHING)
    return Counter(trait for seed in seeds for trait in _traits(make_matching_case(seed)))


@pytest.mark.parametrize("trait", _LEAST_MATCHING)
def test_enough_cases_of_patterns_have(matching_counts: Counter[str], trait: str) -> None:
    assert matching_counts[trait] >= _LEAST_MATCHING[trait], matching_counts


@pytest.fixture(scope="module")
def counts() -> Counter[str]:
    """In how many cases each trait is found."""
    return Counter(trait for seed in _SEEDS for trait in _traits(make_case(seed)))


@pytest.mark.parametrize("trait", _LEAST)
def test_enough_cases_have(counts: Counter[str], trait: str) -> None:
    assert counts[trait] >= _LEAST[trait], counts


def _traits(case: Case) -> set[str]:
    outcome = expected(case)
    found = {*_of_plan(case.plan), *_of_results(outcome.results), *_of_delivery(case, outcome)}
    if outcome.results:
        kinds = {"Aggregate": "an aggregate", "Join": "a join", "MovingJoin": "a join"}
        found |= {f"results of {text}" for kind, text in kinds.items() if kind in found}
    return found


def _of_plan(plan: Plan) -> Iterator[str]:
    for node in walk(plan.root):
        yield type(node).__name__
        if isinstance(node, Windowed):
            yield from _of_window(node)
        if isinstance(node, Aggregate):
            functions = {each.function for each in node.aggregations}
            yield from ["FIRST or LAST"] * (not functions.isdisjoint({FIRST, LAST}))
            yield from ["several kinds of COUNT(DISTINCT)"] * (len(distinct_arguments(node)) > 1)
        if isinstance(node, Join):
            yield f"{node.kind} join"
            below = [_stateful(side) for side in (node.left, node.right)]
            yield from ["join over a window"] * any(Aggregate in each for each in below)
            yield from ["join of two windows"] * all(Aggregate in each for each in below)
            yield from ["join over a join"] * any(Join in each for each in below)
            yield from ["condition of a join"] * (node.condition is not None)
        if isinstance(node, MovingJoin):
            yield f"{node.kind} join of moving windows"
            if node.condition is not None:
                yield "condition of a join of moving windows"
            if any(isinstance(below, MovingJoin) for below in walk(node.left)):
                yield "join of three moving windows"
        if isinstance(node, Match):
            yield str(node.skip.to)
            yield from ["conditions"] * bool(node.definitions)
            yield from ["conditions that read other rows"] * bool(node.readings)
            yield from ["partitions"] * bool(node.partition)
            yield from ["results for each row"] * node.per_row
            yield from ["values of later rows"] * bool(node.rows_ahead)
        if isinstance(node, Moving) and node.window.slide_rows is not None:
            yield "window of tuples"
        if isinstance(node, Moving) and node.window.of_all:
            yield "window with one size for all tuples"
        if isinstance(node, ToStream):
            yield node.change.value
            tops = sum(isinstance(each, Aggregate | Ranked) for each in walk(node.input))
            yield from ["groups or an order below others"] * (tops > 1)
            if isinstance(node.input, Aggregate):
                yield "groups" if node.input.aggregations else "distinct"


def _of_window(node: Windowed) -> Iterator[str]:
    if isinstance(node.window, SessionWindow):
        yield "session window"
    elif node.window.slide_ms < node.window.size_ms:
        yield "hopping window"
    below = _stateful(node.input)
    yield from ["window of windows"] * (Aggregate in below)
    yield from ["window over a join"] * (Join in below)


def _stateful(node: Node) -> set[type]:
    """The kinds of windows and joins at and below a node."""
    return {type(each) for each in walk(node)} & {Aggregate, Join}


def _of_results(results: Sequence[Tuple]) -> Iterator[str]:
    for each in results:
        yield "results"
        categories = each.label.categories() if each.label is not None else ()
        if len(categories) > 1:
            yield "label of several categories"
        if not set(AGGREGATED).isdisjoint(categories):
            yield "lowered result"


def _of_delivery(case: Case, outcome: Outcome) -> Iterator[str]:
    if len({tuple(got) for got in outcome.delivered if got}) > 1:
        yield "classes that get different results"
    for each, got in zip(case.classes, outcome.delivered, strict=True):
        if 0 < len(got) < len(outcome.results):
            yield "a class that gets some results and not others"
        if each.weak and len(got) > len(deliver_strong(outcome.results, each.clearance)):
            yield "results that only weak delivery gives"
        if each.beyond is not None and got and deliver_strong(outcome.results, each.beyond):
            yield "results of a difference class, and others that it leaves out"
