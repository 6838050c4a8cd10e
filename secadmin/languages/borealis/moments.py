"""Comparisons of a time with a number, such as `time > 1764040200`.

The platform has times as timestamps. So the number becomes the timestamp that it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from catalog.errors import InvalidInput
from secadmin.languages.borealis.clock import Clock
from secadmin.languages.expressions.places import Place, offset

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DIGITS = 40


def with_moments(tree: exp.Expr, times: Mapping[tuple[str, str], Clock], place: Place) -> exp.Expr:
    """The tree in which numbers that are compared with a time are timestamps.

    `times` has the clock of each time that the diagram counts in numbers, by qualifier and name.
    Raises InvalidInput if such a number is no time of the years 1 to 9999.
    """
    if not times:
        return tree
    for node in list(tree.find_all(*_COMPARISONS, exp.Between)):
        parts = ("this", "low", "high") if isinstance(node, exp.Between) else ("this", "expression")
        clock = next((c for part in parts if (c := _clock(node.args[part], times))), None)
        if clock is not None:
            for part in parts:
                node.set(part, _moment(node.args[part], clock, place))
    return tree


def _clock(node: exp.Expr, times: Mapping[tuple[str, str], Clock]) -> Clock | None:
    return times.get((node.table, node.name)) if isinstance(node, exp.Column) else None


def _moment(node: exp.Expr, clock: Clock, place: Place) -> exp.Expr:
    """The timestamp of a number, or the node itself if it is no number."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return node
    start = offset(node)
    try:
        digits = str(inner.this)
        if len(digits) > _MAX_DIGITS:
            raise OverflowError
        micros = Decimal(digits) * clock.unit_us * (1 if inner is node else -1)
        if micros != micros.to_integral_value():
            raise InvalidInput("a time has whole microseconds", place(start))
        at = _EPOCH + timedelta(microseconds=int(micros))
    except (OverflowError, InvalidOperation):
        raise InvalidInput("this number is no time of the years 1 to 9999", place(start)) from None
    text = at.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    cast = exp.Cast(
        this=exp.Literal.string(text), to=exp.DataType(this=exp.DType.TIMESTAMP, nested=False)
    )
    cast.meta["start"] = start
    return cast
