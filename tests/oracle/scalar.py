"""Each function of the allow-list on plain values; the caller has widened the numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tests.oracle.text import bounded, double_text, like, to_bigint, to_double
from tests.oracle.values import Value

Function = Callable[..., Value]


def strict(function: Callable[..., Any]) -> Function:
    """NULL if any argument is NULL, and where Python finds no result (such as 1e200 ** 2)."""

    def call(*values: Value) -> Value:
        if any(value is None for value in values):
            return None
        try:
            result: Value = function(*values)
        except (ArithmeticError, ValueError):
            return None
        return result

    return call


def remainder(dividend: float, divisor: float) -> float:
    """With the sign of the dividend, as in SQL."""
    if isinstance(dividend, float):
        return math.fmod(dividend, divisor)
    rest = abs(dividend) % abs(divisor)
    return rest if dividend >= 0 else -rest


def conjunction(*values: Value) -> Value:
    """False if one is false; else NULL if one is NULL; else true."""
    return False if False in values else None if None in values else True


def disjunction(*values: Value) -> Value:
    """True if one is true; else NULL if one is NULL; else false."""
    return True if True in values else None if None in values else False


def coalesce(*values: Value) -> Value:
    """The first that is not NULL."""
    return next((value for value in values if value is not None), None)


def case(*parts: Value) -> Value:
    """when, then, when, then, ..., else: the first `then` whose `when` is true."""
    for when, then in zip(parts[:-1:2], parts[1:-1:2], strict=True):
        if when is True:
            return then
    return parts[-1]


def substring(text: str, start: int, length: int) -> str:
    """The characters at the positions start, start + 1, ..., `length` of them, from 1 on."""
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def cast_string(value: Value) -> str:
    """true, false; numbers as on the labelled topics."""
    if isinstance(value, bool):
        return str(value).lower()
    return double_text(value) if isinstance(value, float) else str(value)


STRICT: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": remainder,
    "/": lambda a, b: float(a) / float(b),
    "negate": operator.neg,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "not": operator.not_,
    "upper": bounded(str.upper, 3),
    "lower": bounded(str.lower, 3),
    "trim": lambda text: text.strip(" "),
    "length": len,
    "concat": bounded(lambda *texts: "".join(texts), 1),
    "substring": substring,
    "like": like,
    **{
        unit: operator.attrgetter(unit)
        for unit in ("year", "month", "day", "hour", "minute", "second")
    },
    "cast_bigint": to_bigint,
    "cast_double": to_double,
    "cast_string": cast_string,
}

FUNCTIONS: dict[str, Function] = {
    **{name: strict(function) for name, function in STRICT.items()},
    "and": conjunction,
    "or": disjunction,
    "is_null": lambda value: value is None,
    "coalesce": coalesce,
    "case": case,
}
