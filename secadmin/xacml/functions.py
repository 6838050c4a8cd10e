"""The functions of XACML 3.0 (section A.3), each with the types that it takes and gives.

A policy is checked against them when it is loaded. A function raises Indeterminate for values for
which it has no answer. All are here that the standard calls mandatory (section 10.2.8). Not here,
so refused by name: XPath, and the other optional functions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from secadmin.xacml import regular_expressions
from secadmin.xacml.data_types import BY_NAME, MAX_TEXT, DataType, read_value, within_64_bits


class Indeterminate(Exception):
    """An expression has no value. The message says why, and never holds a value of a request."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of an expression: a data type, by its short name, or a bag of its values."""

    name: str
    bag: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `rest` is the kind of any number of further arguments.

    `check` raises ValueError for a constant first argument for which the function never has an
    answer. `steps` has the steps that a call takes besides one for each value.
    """

    takes: tuple[Kind, ...]
    gives: Kind
    run: Callable[..., Any]
    rest: Kind | None = None
    check: Callable[[Any], None] | None = None
    steps: Callable[..., int] | None = None

    def fits(self, kinds: tuple[Kind, ...]) -> bool:
        """Whether it takes arguments of these kinds."""
        fixed = len(self.takes)
        further = kinds[fixed:]
        return kinds[:fixed] == self.takes and all(kind == self.rest for kind in further)


BOOLEAN, STRING, INTEGER, DOUBLE = (
    Kind(name) for name in ("boolean", "string", "integer", "double")
)
PREFIX = "urn:oasis:names:tc:xacml:"
_SINCE_3 = ("dayTimeDuration", "yearMonthDuration")
_ORDERED = ("integer", "double", "string", "time", "dateTime", "date")
_TEXTS = tuple(name for name in BY_NAME if name not in ("string", "hexBinary", "base64Binary"))
# Names and addresses of the network. Two of them are not compared: one may stand for many hosts.
NETWORK = ("ipAddress", "dnsName")
_MATCHED = ("anyURI", *NETWORK, "rfc822Name", "x500Name")


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _intersection(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    shared = set(second)
    return _distinct(value for value in first if value in shared)


def _one_and_only(bag: tuple[Any, ...]) -> Any:
    if len(bag) != 1:
        raise Indeterminate(f"one-and-only of a bag of {len(bag)} values")
    return bag[0]


def _guarded(run: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with errors of arithmetic as Indeterminate."""

    def guarded(*values: Any) -> Any:
        try:
            return run(*values)
        except (ArithmeticError, ValueError):
            raise Indeterminate("a function has no result for these values") from None

    return guarded


def _whole_number(run: Callable[..., int]) -> Callable[..., Any]:
    return _guarded(lambda *values: within_64_bits(run(*values)))


def _divided(left: int, right: int) -> int:
    """Toward zero, as the standard has it."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _divided(left, right)


def _add_months(moment: datetime, months: int) -> datetime:
    """The moment some months later; its day is cut to the month's last (XML Schema, appendix E)."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    first = moment.replace(year=year, month=month + 1, day=1)
    after = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    return first.replace(day=min(moment.day, (after - timedelta(days=1)).day))


def _in_range(value: Any, low: Any, high: Any) -> bool:
    """A range that ends before it begins goes over midnight."""
    return bool(low <= value <= high if low <= high else value >= low or value <= high)


def _substring(text: str, start: int, end: int) -> str:
    end = len(text) if end == -1 else end
    if not 0 <= start <= end <= len(text):
        raise Indeterminate("substring outside the text")
    return text[start:end]


def _joined(*texts: str) -> str:
    """Bounded, because variables can double a text many times."""
    if sum(map(len, texts)) > MAX_TEXT:
        raise Indeterminate(f"a text of more than {MAX_TEXT} characters")
    return "".join(texts)


def _mail_matches(pattern: str, mail: tuple[str, str]) -> bool:
    local, domain = mail
    if "@" in pattern:
        wanted, _, place = pattern.rpartition("@")
        return (wanted, place.lower()) == (local, domain)
    if pattern.startswith("."):
        return domain.endswith(pattern.lower())
    return domain == pattern.lower()


def _reader(data_type: DataType) -> Callable[[str], Any]:
    return _guarded(lambda text: read_value(data_type, text))


def _of_each_type() -> Iterator[tuple[str, Function]]:
    for name in BY_NAME:
        one, many = Kind(name), Kind(name, bag=True)
        since = "3.0" if name in _SINCE_3 else "2.0" if name in NETWORK else "1.0"
        start = f"{since}:function:{name}-"
        yield start + "one-and-only", Function((many,), one, _one_and_only)
        yield start + "bag-size", Function((many,), INTEGER, len)
        yield start + "bag", Function((), many, lambda *values: values, rest=one)
        if name in NETWORK:
            continue
        yield start + "equal", Function((one, one), BOOLEAN, operator.eq)
        yield start + "is-in", Function((one, many), BOOLEAN, lambda value, bag: value in bag)
        yield (
            start + "intersection",
            Function((many, many), many, _intersection),
        )
        yield (
            start + "union",
            Function((many, many), many, lambda *bags: _distinct(chain(*bags)), rest=many),
        )
        yield (
            start + "at-least-one-member-of",
            Function((many, many), BOOLEAN, lambda a, b: not set(a).isdisjoint(b)),
        )
        yield (
            start + "subset",
            Function((many, many), BOOLEAN, lambda a, b: set(a) <= set(b)),
        )
        yield start + "set-equals", Function((many, many), BOOLEAN, lambda a, b: set(a) == set(b))
    for name in _ORDERED:
        for ending, run in (
            ("greater-than", operator.gt),
            ("greater-than-or-equal", operator.ge),
            ("less-than", operator.lt),
            ("less-than-or-equal", operator.le),
        ):
            one = Kind(name)
            yield f"1.0:function:{name}-{ending}", Function((one, one), BOOLEAN, run)


def _arithmetic() -> Iterator[tuple[str, Function]]:
    start = "1.0:function:"
    for name, run in (("add", operator.add), ("multiply", operator.mul)):
        for kind, bounded in ((INTEGER, _whole_number), (DOUBLE, _guarded)):

            def folded(*values: Any, run: Callable[[Any, Any], Any] = run) -> Any:
                total = values[0]
                for value in values[1:]:
                    total = run(total, value)
                return total

            yield (
                f"{start}{kind.name}-{name}",
                Function((kind, kind), kind, bounded(folded), rest=kind),
            )
    two_integers, two_doubles = (INTEGER, INTEGER), (DOUBLE, DOUBLE)
    yield start + "integer-subtract", Function(two_integers, INTEGER, _whole_number(operator.sub))
    yield start + "double-subtract", Function(two_doubles, DOUBLE, operator.sub)
    yield start + "integer-divide", Function(two_integers, INTEGER, _whole_number(_divided))
    yield start + "double-divide", Function(two_doubles, DOUBLE, _guarded(operator.truediv))
    yield start + "integer-mod", Function(two_integers, INTEGER, _whole_number(_remainder))
    yield start + "integer-abs", Function((INTEGER,), INTEGER, _whole_number(abs))
    yield start + "double-abs", Function((DOUBLE,), DOUBLE, abs)
    yield start + "round", Function((DOUBLE,), DOUBLE, _guarded(lambda value: float(round(value))))
    yield start + "floor", Function((DOUBLE,), DOUBLE, _guarded(lambda v: float(math.floor(v))))
    yield start + "double-to-integer", Function((DOUBLE,), INTEGER, _whole_number(int))
    yield start + "integer-to-double", Function((INTEGER,), DOUBLE, float)
    yield start + "not", Function((BOOLEAN,), BOOLEAN, operator.not_)


def _strings() -> Iterator[tuple[str, Function]]:
    one = "1.0:function:"
    yield one + "string-normalize-space", Function((STRING,), STRING, str.strip)
    yield one + "string-normalize-to-lower-case", Function((STRING,), STRING, str.lower)
    yield (
        "3.0:function:string-equal-ignore-case",
        Function((STRING, STRING), BOOLEAN, lambda a, b: a.lower() == b.lower()),
    )
    yield (
        "2.0:function:string-concatenate",
        Function((STRING, STRING), STRING, _joined, rest=STRING),
    )
    for name in ("string", "anyURI"):
        kind, start = Kind(name), f"3.0:function:{name}-"
        takes = (STRING, kind)
        yield start + "starts-with", Function(takes, BOOLEAN, lambda a, b: b.startswith(a))
        yield start + "ends-with", Function(takes, BOOLEAN, lambda a, b: b.endswith(a))
        yield start + "contains", Function(takes, BOOLEAN, lambda a, b: a in b)
        yield start + "substring", Function((kind, INTEGER, INTEGER), STRING, _substring)
    for name in _TEXTS:
        data_type, kind = BY_NAME[name], Kind(name)
        yield f"3.0:function:string-from-{name}", Function((kind,), STRING, data_type.write)
        yield f"3.0:function:{name}-from-string", Function((STRING,), kind, _reader(data_type))


def _regular_expressions() -> Iterator[tuple[str, Function]]:
    yield "1.0:function:string-regexp-match", _matching(BY_NAME["string"])
    for name in _MATCHED:
        yield f"2.0:function:{name}-regexp-match", _matching(BY_NAME[name])


def _matching(data_type: DataType) -> Function:
    """Whether the text of a value matches."""

    def run(pattern: str, value: Any) -> bool:
        return regular_expressions.matches(pattern, data_type.write(value))

    def steps(pattern: str, value: Any) -> int:
        return regular_expressions.steps(pattern, data_type.write(value))

    takes = (STRING, Kind(data_type.name))
    check = regular_expressions.check
    return Function(takes, BOOLEAN, _guarded(run), check=check, steps=steps)


def _times_and_names() -> Iterator[tuple[str, Function]]:
    moment, day, time = Kind("dateTime"), Kind("date"), Kind("time")
    days, months = Kind("dayTimeDuration"), Kind("yearMonthDuration")
    start = "3.0:function:"
    add, subtract = _guarded(operator.add), _guarded(operator.sub)
    later, earlier = _guarded(_add_months), _guarded(lambda at, count: _add_months(at, -count))
    yield start + "dateTime-add-dayTimeDuration", Function((moment, days), moment, add)
    yield start + "dateTime-subtract-dayTimeDuration", Function((moment, days), moment, subtract)
    for kind in (moment, day):
        named = f"{start}{kind.name}-"
        yield named + "add-yearMonthDuration", Function((kind, months), kind, later)
        yield named + "subtract-yearMonthDuration", Function((kind, months), kind, earlier)
    yield "2.0:function:time-in-range", Function((time, time, time), BOOLEAN, _in_range)
    name, mail = Kind("x500Name"), Kind("rfc822Name")
    yield (
        "1.0:function:x500Name-match",
        Function((name, name), BOOLEAN, lambda end, whole: whole[-len(end) :] == end),
    )
    yield "1.0:function:rfc822Name-match", Function((STRING, mail), BOOLEAN, _mail_matches)


FUNCTIONS: dict[str, Function] = {
    PREFIX + name: function
    for group in (_of_each_type, _arithmetic, _strings, _regular_expressions, _times_and_names)
    for name, function in group()
}
