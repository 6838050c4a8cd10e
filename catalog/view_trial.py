"""What a view shows of one record. A policy is tried with it before anybody depends on it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.role_view import RoleView
from catalog.schema import Schema

# A TIMESTAMP is in microseconds since 1970 UTC; None is NULL.
Value = bool | int | float | str | None
Values = Mapping[str, Value]
_COMPARED = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Sight:
    """What a view shows of a record: whether it is seen at all, and which values.

    `aggregated` has the attributes that can be used only in aggregates, with their functions. With
    a smallest window, the record is seen only in aggregates over windows.
    """

    seen: bool
    values: Values
    aggregated: Mapping[str, tuple[str, ...]]


def sight_of(view: RoleView, schema: Schema, record: Values) -> Sight:
    """What the view shows of a record of the stream. An attribute that is absent is NULL."""
    for condition in (view.rows, view.visible_when):
        if condition is not None and _value(condition, record) is not True:
            return Sight(False, {}, {})
    values: dict[str, Value] = {}
    aggregated: dict[str, tuple[str, ...]] = {}
    for name in schema.names:
        right = view.right(name)
        if right is None:
            continue
        if right.functions is not None:
            aggregated[name] = right.functions
        elif right.when is None or _value(right.when, record) is True:
            values[name] = record.get(name)
        else:
            values[name] = None
    return Sight(True, values, aggregated)


def _value(expression: Expression, record: Values) -> Value:
    """The value of a policy's condition, which has `CONDITION_FUNCTIONS` only."""
    match expression:
        case AttributeRef(name):
            return record.get(name)
        case Literal(value):
            return value
        case Call(function, arguments):
            return _call(function, [_value(argument, record) for argument in arguments])


def _call(function: str, values: list[Value]) -> Value:
    match function:
        case "and":
            return _three(values, decides=False)
        case "or":
            return _three(values, decides=True)
        case "not":
            return None if values[0] is None else not values[0]
        case "is_null":
            return values[0] is None
    left, right = values
    return None if left is None or right is None else _COMPARED[function](left, right)


def _three(values: list[Value], *, decides: bool) -> Value:
    """AND (False decides) or OR (True decides) with three values."""
    if any(value is decides for value in values):
        return decides
    return None if None in values else not decides
