"""The aggregate functions: what they compute of the values of a group, and the type of the result.

An engine runs no other one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from catalog.functions import NUMERIC, ORDERED
from catalog.schema import (
    MAX_TYPE_DEPTH,
    ArrayType,
    AttributeType,
    Type,
    depth_of,
    is_comparable,
)

AggregateRule = Callable[[AttributeType], AttributeType | None]


def _aggregate_any(result: Type) -> AggregateRule:
    return lambda argument: result


def _aggregate_number(result: Type | None) -> AggregateRule:
    return lambda argument: (result or argument) if argument in NUMERIC else None


# name -> the result's type for the argument's type, or None if the type does not fit.
# count(*) is `count` without an argument. stddev is of the sample, NULL below two values.
AGGREGATE_FUNCTIONS: dict[str, AggregateRule] = {
    "count": _aggregate_any(Type.BIGINT),
    "sum": _aggregate_number(None),
    "avg": _aggregate_number(Type.DOUBLE),
    "stddev": _aggregate_number(Type.DOUBLE),
    "min": lambda argument: argument if argument in ORDERED else None,
    "max": lambda argument: argument if argument in ORDERED else None,
}

COUNT_DISTINCT = "count_distinct"
# The value of the first or the last tuple of a group, by event time.
FIRST, LAST = "first", "last"
# Those that a policy can name.
POLICY_FUNCTIONS: dict[str, AggregateRule] = {
    **AGGREGATE_FUNCTIONS,
    FIRST: lambda argument: argument,
    LAST: lambda argument: argument,
}
# In a plan COUNT(DISTINCT x) has a name of its own.
ALL_AGGREGATE_FUNCTIONS: dict[str, AggregateRule] = {
    **POLICY_FUNCTIONS,
    COUNT_DISTINCT: lambda argument: Type.BIGINT if is_comparable(argument) else None,
}

# The functions that an owner can declare for READ AGGREGATE. min and max would show single values.
DECLARABLE_FUNCTIONS = frozenset({"count", "sum", "avg", "stddev"})

COLLECT_LIST, COLLECT_SET = "collect_list", "collect_set"
TOPK, TOPKDISTINCT = "topk", "topkdistinct"
# How many values an array of a group has at most, and how long each text among them may be. A
# group with a longer text has no array, which is NULL.
MAX_COLLECTED = 1_000
MAX_COLLECTED_BYTES = 4_000
MAX_TOP = 100
_TOP = re.compile(rf"({TOPK}|{TOPKDISTINCT})_([1-9][0-9]{{0,2}})")


@dataclass(frozen=True, slots=True)
class Collecting:
    """An aggregate whose result is an array of values of the group, of at most `most` of them.

    With `greatest` these are the greatest ones, the greatest first. Without, they are in the order
    of their tuples. If they are `distinct`, each is there once, and the smallest come first.
    """

    most: int
    distinct: bool = False
    greatest: bool = False

    def result(self, argument: AttributeType) -> AttributeType | None:
        """The type of the array, or None if the function does not take the argument."""
        ordered = argument in ORDERED or not self.greatest
        same = is_comparable(argument) or not self.distinct
        return ArrayType(argument) if ordered and same and _fits(argument) else None


def _fits(argument: AttributeType) -> bool:
    return depth_of(argument) < MAX_TYPE_DEPTH


def collecting(function: str) -> Collecting | None:
    """What an aggregate collects, or None if its result is no array.

    In a plan TOPK(x, 3) is `topk_3`, and TOPKDISTINCT(x, 3) is `topkdistinct_3`.
    """
    if function == COLLECT_LIST:
        return Collecting(MAX_COLLECTED)
    if function == COLLECT_SET:
        return Collecting(MAX_COLLECTED, distinct=True)
    top = _TOP.fullmatch(function)
    if top is None or int(top[2]) > MAX_TOP:
        return None
    return Collecting(int(top[2]), distinct=top[1] == TOPKDISTINCT, greatest=True)


def aggregate_rule(function: str) -> AggregateRule | None:
    """The rule for the type of an aggregate's result, or None if there is no such aggregate."""
    array = collecting(function)
    return ALL_AGGREGATE_FUNCTIONS.get(function) if array is None else array.result


def aggregate_words(function: str, argument: str) -> str:
    """A call of an aggregate of a plan as people write it.

    >>> aggregate_words("topk_3", "price"), aggregate_words("count_distinct", "price")
    ('topk(price, 3)', 'count(DISTINCT price)')
    """
    if function == COUNT_DISTINCT:
        return f"count(DISTINCT {argument})"
    top = _TOP.fullmatch(function)
    return f"{function}({argument})" if top is None else f"{top[1]}({argument}, {top[2]})"


def keeps_values(function: str) -> bool:
    """Whether an aggregate keeps each different value of a group by itself."""
    array = collecting(function)
    return function == COUNT_DISTINCT or (array is not None and array.distinct)
