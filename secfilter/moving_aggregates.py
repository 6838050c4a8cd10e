"""Aggregates over the texts of a group's values, as the engine's own aggregates compute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from catalog.aggregates import COLLECT_LIST, FIRST, LAST, collecting
from catalog.schema import AttributeType
from secfilter.lab import SEPARATOR
from secfilter.moving_arrays import array_form
from secfilter.moving_values import Value, text_of, value_of

Values = tuple[Value | None, ...]
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Computed:
    """One aggregate: its function, and the type and index of its argument (None: all tuples)."""

    function: str
    type: AttributeType | None = None
    argument: int | None = None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Makes the row of a group: those of the key's parts and of the aggregates that are shown.

    `shown` has their places: 0 to `keys` - 1 are the key's parts, the aggregates follow.
    """

    keys: int
    aggregates: tuple[Computed, ...]
    shown: tuple[int, ...]
    # Whether rows of equal values and label are one group, if there is no aggregate.
    distinct: bool = True

    @property
    def computes(self) -> bool:
        """Whether there is any aggregate."""
        return bool(self.aggregates)

    @property
    def by_order(self) -> bool:
        """Whether the order of the tuples decides."""
        return any(each.function in (FIRST, LAST, COLLECT_LIST) for each in self.aggregates)

    def read(self, arguments: str) -> Values:
        """The values of a tuple's arguments."""
        texts = arguments.split(SEPARATOR)
        return tuple(
            value_of(texts[each.argument], each.type)
            for each in self.aggregates
            if each.argument is not None and each.type is not None
        )

    def row(self, key: str, group: Collection[Values]) -> str:
        """The row of a group with this key, and these values of its tuples, in their order."""
        parts = key.split(SEPARATOR) if self.keys else []
        every = [*parts, *(text_of(_computed(each, group)) for each in self.aggregates)]
        return SEPARATOR.join(every[place] for place in self.shown)


def _computed(each: Computed, group: Collection[Values]) -> Value | None:
    place = each.argument
    if place is None:
        return len(group)
    values = [value for tuple_ in group if (value := tuple_[place]) is not None]
    if each.function == "count":
        return len(values)
    if each.function == "count_distinct":
        return len(set(values))
    array = collecting(each.function)
    if array is not None and each.type is not None:
        return array_form(array, values, each.type) if values else None
    return _FUNCTIONS[each.function](values) if values else None


def _sum(values: Sequence[Value]) -> Value | None:
    if set(map(type, values)) == {int}:
        total = sum(_numbers(values))
        return int(total) if -_LARGEST <= total < _LARGEST else None
    return _double_sum(values)


def _double_sum(values: Sequence[Value]) -> float | None:
    try:
        return math.fsum(_numbers(values))
    except OverflowError:
        # A part of the sum may be beyond all doubles when the whole is not.
        return as_float(sum(map(Fraction, map(float, _numbers(values))), Fraction()))


def as_float(exact: Fraction) -> float | None:
    """The nearest double, or None if the number is beyond all doubles."""
    try:
        return float(exact)
    except OverflowError:
        return None


def _mean(values: Sequence[Value]) -> float | None:
    total = _double_sum(values)
    return None if total is None else total / len(values)


def _deviation(values: Sequence[Value]) -> float | None:
    """Of the sample, so there is none of one value."""
    mean = _mean(values)
    if mean is None or len(values) < 2:
        return None
    try:
        squares = math.fsum((each - mean) ** 2 for each in _numbers(values))
    except OverflowError:
        return None
    return math.sqrt(squares / (len(values) - 1))


def _numbers(values: Sequence[Value]) -> Sequence[float]:
    """The values as they are: these aggregates are of numbers. A text would raise TypeError."""
    return cast("Sequence[float]", values)


_FUNCTIONS: dict[str, Callable[[Sequence[Value]], Value | None]] = {
    "sum": _sum,
    "avg": _mean,
    "stddev": _deviation,
    "min": min,
    "max": max,
    FIRST: lambda values: values[0],
    LAST: lambda values: values[-1],
}
