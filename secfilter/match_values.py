"""The values that the conditions and results of an event pattern read: FIRST, LAST and aggregates.

A value that is computed row by row has an accumulator. Accumulators are compared and hashed: two
ways to read rows that have equal accumulators go on alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from catalog.match_expressions import ReadValue
from secfilter.moving_values import Value

# Of FIRST: how many rows came before, and then what is in the row in a tuple. Of LAST: what is in
# the newest rows. Of an aggregate: its result so far.
Accumulator = Any


def empty(reading: ReadValue) -> Accumulator:
    """The accumulator before any row."""
    match reading.function:
        case "count":
            return 0
        case "sum" | "avg":
            return (0, Fraction(0))
        case "min" | "max":
            return None
        case "first":
            return 0
        case _:
            return ()


def added(reading: ReadValue, so_far: Accumulator, value: Any) -> Accumulator:
    """The accumulator with one more row of the reading's variable, and what is in the row.

    FIRST and LAST keep what they get as it is.
    """
    match reading.function:
        case "first":
            if isinstance(so_far, tuple):
                return so_far
            return (value,) if so_far == reading.offset else so_far + 1
        case "last":
            return (*so_far, value)[-reading.offset - 1 :]
    if value is None:
        return so_far
    match reading.function:
        case "count":
            return so_far + 1
        case "sum" | "avg":
            count, total = so_far
            # A fraction is exact. So a sum does not depend on the order in which it is made.
            exact = value if isinstance(value, int) else Fraction(_number(value))
            return (count + 1, total + exact)
        case "min":
            return value if so_far is None else min(so_far, value)
        case _:
            return value if so_far is None else max(so_far, value)


def result(reading: ReadValue, so_far: Accumulator, *, whole: bool) -> Any:
    """The value of a reading. `whole` says that the argument is a BIGINT."""
    match reading.function:
        case "first":
            return so_far[0] if isinstance(so_far, tuple) else None
        case "last":
            return so_far[0] if len(so_far) > reading.offset else None
        case "sum":
            count, total = so_far
            return _sum(total, whole) if count else None
        case "avg":
            count, total = so_far
            summed = _double(total) if count else None
            return None if summed is None else summed / count
        case _:
            return so_far


def value_in(reading: ReadValue, values: Sequence[Value | None]) -> Value | None:
    """The value of the reading's argument in a row. For count(*) it is something."""
    return True if reading.argument is None else values[reading.argument]


def _sum(total: Fraction, whole: bool) -> int | float | None:
    if not whole:
        return _double(total)
    return int(total) if -(2**63) <= total < 2**63 else None


def _double(total: Fraction) -> float | None:
    try:
        return float(total)
    except OverflowError:
        return None


def _number(value: Value) -> float:
    if isinstance(value, str):
        raise TypeError("a text is no number")
    return float(value)
