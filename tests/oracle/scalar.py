"""Each function of the allow-list on plain values; the caller has widened the numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from tests.oracle import nested_values as nested
from tests.oracle.text import (
    LONGEST,
    bounded,
    caseless,
    double_text,
    found,
    group,
    like,
    to_bigint,
    to_double,
)
from tests.oracle.values import Items, Value

Function = Callable[..., Value]
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


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


def rounded(value: float, digits: float) -> float:
    """Half away from zero, of the decimal digits that are written; 0 has no sign."""
    if isinstance(value, int):
        return value
    with localcontext(prec=400):
        step = Decimal(1).scaleb(-int(digits))
        return float(Decimal(repr(value)).quantize(step, ROUND_HALF_UP)) + 0.0


def known(choose: Callable[..., Any]) -> Function:
    """The choice among the values that are not NULL."""

    def call(*values: Value) -> Value:
        given = [value for value in values if value is not None]
        result: Value = choose(given) if given else None
        return result

    return call


def start_of(unit: str) -> Callable[[datetime], datetime]:
    """The first moment of the unit in which a time lies; a week begins on Monday."""
    smaller = {"second": 0, "minute": 1, "hour": 2, "day": 3, "week": 3, "month": 4, "quarter": 4}
    first = [("microsecond", 0), ("second", 0), ("minute", 0), ("hour", 0), ("day", 1)]
    first += [("month", 1)]

    def call(time: datetime) -> datetime:
        begun = time.replace(**dict(first[: smaller.get(unit, 5) + 1]))  # type: ignore[arg-type]
        if unit == "week":
            return begun - timedelta(days=begun.weekday())
        return begun.replace(month=(time.month - 1) // 3 * 3 + 1) if unit == "quarter" else begun

    return call


def substring(text: str, start: int, length: int) -> str:
    """The characters at the positions start, start + 1, ..., `length` of them, from 1 on."""
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def cast_string(value: Value) -> str:
    """true, false; numbers as on the labelled topics."""
    if isinstance(value, bool):
        return str(value).lower()
    return double_text(value) if isinstance(value, float) else str(value)


def array(*values: Value) -> Value:
    """An array of the values, unless its texts could make it too long."""
    texts = [value for value in values if isinstance(value, str)]
    return Items(values) if 7 * sum(len(text.encode()) for text in texts) <= LONGEST else None


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
    "round": rounded,
    "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
    "reverse": lambda text: text[::-1],
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "position": lambda text, part: text.find(part) + 1,
    "length": len,
    "micros_between": lambda one, other: (one - other) // timedelta(microseconds=1),
    "concat": bounded(lambda *texts: "".join(texts), 1),
    "substring": substring,
    "like": like,
    "ilike": lambda text, pattern: like(caseless(text), caseless(pattern)),
    "regexp_like": found,
    **{f"regexp_group_{number}": group(number) for number in range(10)},
    **{f"start_of_{unit}": start_of(unit) for unit in UNITS},
    **{
        unit: operator.attrgetter(unit)
        for unit in ("year", "month", "day", "hour", "minute", "second")
    },
    "cast_bigint": to_bigint,
    "cast_double": to_double,
    "cast_string": cast_string,
    "element": nested.element,
    "field": lambda whole, name: dict(whole.pairs).get(name),
    "cardinality": nested.cardinality,
    "map_keys": lambda whole: Items(tuple(key for key, _ in whole.pairs)),
    "map_values": lambda whole: Items(tuple(value for _, value in whole.pairs)),
}

FUNCTIONS: dict[str, Function] = {
    **{name: strict(function) for name, function in STRICT.items()},
    "and": conjunction,
    "or": disjunction,
    "is_null": lambda value: value is None,
    "coalesce": coalesce,
    "greatest": known(max),
    "least": known(min),
    "case": case,
    "contains": nested.contains,
    "array": array,
}
