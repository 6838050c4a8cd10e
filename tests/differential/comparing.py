"""Whether two outcomes are one: multisets of tuples, doubles of aggregates nearly equal."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from pyspark.sql import SparkSession

from catalog.clearance import Clearance
from catalog.plan import Aggregate, walk
from tests.differential.case import Case, Outcome
from tests.differential.engine import run_cases
from tests.differential.expected import Records, expected
from tests.oracle.values import Tuple, Value


def check(case: Case, found: Outcome, newest: Records | None = None) -> None:
    """Raise AssertionError, naming the case, where the outcome differs from the oracle's."""
    wanted = expected(case, newest)
    near = any(isinstance(node, Aggregate) for node in walk(case.plan.root))
    differing = differences(wanted, found, near=near)
    assert not differing, "\n".join([case.name, *differing, f"{case!r}"])
    for each, delivered in zip(case.classes, found.delivered, strict=True):
        assert each.weak or _all_covered(delivered, each.clearance), case.name


def differences(wanted: Outcome, found: Outcome, *, near: bool) -> list[str]:
    """What is missing, and what is wrong: of all results, and of each class.

    If they are `near`, doubles are compared to some digits.
    """
    pairs = [("results", wanted.results, found.results)]
    for index, both in enumerate(zip(wanted.delivered, found.delivered, strict=True)):
        pairs.append((f"class {index}", *both))
    return [
        f"{what}: missing {missing}, wrong {wrong}"
        for what, right, got in pairs
        for missing, wrong in [_difference(right, got, near)]
        if missing or wrong
    ]


def _all_covered(delivered: Sequence[Tuple], clearance: Clearance) -> bool:
    """The one rule, said once more without the oracle."""
    held = {
        category
        for category in range(clearance.bits.bit_length())
        if clearance.bits >> category & 1
    }
    return all(
        each.label is not None and held.issuperset(each.label.categories()) for each in delivered
    )


def _difference(
    right: Sequence[Tuple], got: Sequence[Tuple], near: bool
) -> tuple[list[Tuple], list[Tuple]]:
    """What is missing from `got`, and what it has that is not right."""
    missing, wrong = [], list(got)
    for each in right:
        match = next((other for other in wrong if _same(each, other, near)), None)
        if match is None:
            missing.append(each)
        else:
            wrong.remove(match)
    return missing, wrong


def _same(a: Tuple, b: Tuple, near: bool) -> bool:
    return a.label == b.label and all(
        _equal(x, y, near) for x, y in zip(a.values, b.values, strict=True)
    )


def _equal(a: Value, b: Value, near: bool) -> bool:
    if type(a) is not type(b):
        return False
    if near and isinstance(a, float) and isinstance(b, float):
        return isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
    return a == b


def check_all(spark: SparkSession, cases: Sequence[Case]) -> None:
    """Run the cases in one job and check each; all that differ are named."""
    differing = []
    for case, outcome in zip(cases, run_cases(spark, cases), strict=True):
        try:
            check(case, outcome)
        except AssertionError as error:
            differing.append(str(error))
    assert not differing, "\n\n".join([f"{len(differing)} of {len(cases)} differ", *differing])
