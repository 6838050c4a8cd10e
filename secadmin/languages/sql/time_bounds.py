"""The time bound of a join. It compares the event times of both sides, shifted by intervals.

An attribute that goes with the event time, such as the start of a window, stands for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput
from catalog.moments import Moments
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Table
from secadmin.languages.expressions.windows import interval

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.EQ: exp.EQ,
}


@dataclass(frozen=True, slots=True)
class Sides:
    """The names by which the query can write a moment of each side.

    With each comes how far it is behind the event time of its side (ms).
    """

    left: Mapping[str, int]
    right: Mapping[str, int]
    environment: Environment


def written_moments(
    tables: Sequence[Table], known: Moments, others: Sequence[Table] = ()
) -> Mapping[str, int]:
    """The names of these attributes in the query: qualified, and plain if nothing else has it.

    `known` has their names in the plan. `others` are the tables of the other side.
    """
    count = Counter(field.name for table in (*tables, *others) for field in table.fields)
    found: dict[str, int] = {}
    for table in tables:
        for field in table.fields:
            if field.inner in known:
                plain = [field.name] if count[field.name] == 1 else []
                found |= dict.fromkeys((f"{table.alias}.{field.name}", *plain), known[field.inner])
    return found


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound: right event time >= left event time + `ms` if `lower`, <= otherwise."""

    lower: bool
    ms: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of one side: its event time, shifted by milliseconds."""

    is_left: bool
    shift_ms: int


def bounds(node: exp.Expr, sides: Sides) -> tuple[Bound, ...]:
    """The bounds that a condition sets. There are none if it does not compare event times.

    Raises InvalidInput for a comparison of event times that is not an inclusive bound in
    milliseconds.
    """
    found = [_bound(*comparison, sides) for comparison in _comparisons(node)]
    parts = [bound for each in found for bound in each]
    if any(not each for each in found):
        return ()
    return tuple(parts)


def _comparisons(node: exp.Expr) -> Iterator[tuple[type[exp.Expr], exp.Expr, exp.Expr]]:
    if isinstance(node, exp.Between):
        yield exp.GTE, node.this, node.args["low"]
        yield exp.LTE, node.this, node.args["high"]
    elif type(node) in _MIRRORED:
        yield type(node), node.this, node.expression


def _bound(
    operator: type[exp.Expr], one: exp.Expr, other: exp.Expr, sides: Sides
) -> tuple[Bound, ...]:
    first, second = _moment(one, sides), _moment(other, sides)
    if first is None or second is None or first.is_left == second.is_left:
        return ()
    if first.is_left:
        operator, first, second = _MIRRORED[operator], second, first
    shift = second.shift_ms - first.shift_ms
    if operator in (exp.GT, exp.LT):
        if not (one.find(exp.Interval) or other.find(exp.Interval)):
            # Event times have microseconds, so the comparison itself also stays as a condition.
            return (Bound(operator is exp.GT, shift),)
        raise InvalidInput(
            "a join's time bound is inclusive; write >= or <=", sides.environment.at(one)
        )
    lower, upper = Bound(lower=True, ms=shift), Bound(lower=False, ms=shift)
    if operator is exp.EQ:
        return (lower, upper)
    return (lower,) if operator is exp.GTE else (upper,)


def is_condition_too(node: exp.Expr) -> bool:
    """Say whether a condition that sets a bound is stricter than the bound."""
    return isinstance(node, exp.GT | exp.LT)


def _moment(node: exp.Expr, sides: Sides) -> Moment | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        column, alias = sides.environment.column(node)
        name = f"{alias}.{column}" if alias else column
        if name in sides.left:
            return Moment(is_left=True, shift_ms=sides.left[name])
        return Moment(False, sides.right[name]) if name in sides.right else None
    if isinstance(node, exp.Add | exp.Sub):
        return _shifted(node, sides)
    return None


def _shifted(node: exp.Add | exp.Sub, sides: Sides) -> Moment | None:
    moved, shift = node.this, node.expression
    if isinstance(node, exp.Add) and isinstance(moved, exp.Interval):
        moved, shift = shift, moved
    if not isinstance(shift, exp.Interval):
        return None
    moment = _moment(moved, sides)
    if moment is None:
        raise InvalidInput(
            "an interval is added to the event time of a side of the join",
            sides.environment.at(node),
        )
    length = interval(shift, sides.environment)
    sign = -1 if isinstance(node, exp.Sub) else 1
    return Moment(moment.is_left, moment.shift_ms + sign * length)
