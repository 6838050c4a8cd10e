"""Each aggregate function on the values of a group that are not NULL."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from tests.oracle.expressions import total
from tests.oracle.nested_values import collected
from tests.oracle.values import Value


def aggregate(function: str, values: Sequence[Value]) -> Value:
    """The result over a group; NULLs do not count, and of nothing only count has a result.

    The values are in the order of their tuples.
    """
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    if function == "count_distinct":
        return len({*known})
    if function in ("first", "last"):
        return known[0 if function == "first" else -1] if known else None
    if function.startswith(("collect", "topk")):
        return collected(function, known)
    try:
        return total(_FUNCTIONS[function](known)) if known else None
    except OverflowError:
        return None


def _sum(values: list[float]) -> float:
    return _exact(values) if isinstance(values[0], float) else sum(values)


def _exact(values: list[float]) -> float:
    """The exact sum, rounded once. Whether it is beyond all doubles is then known."""
    return float(sum(map(Fraction, map(float, values))))


def _stddev(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


_FUNCTIONS: dict[str, Callable[[list[Any]], Value]] = {
    "sum": _sum,
    "avg": lambda values: _exact(values) / len(values),
    "stddev": _stddev,
    "min": min,
    "max": max,
}
