"""CAST(x AS type) and x::type: the types that a cast goes to, and their names in other systems."""

from __future__ import annotations

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.schema import AttributeType, Type
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.nested_values import type_of_cast
from secadmin.languages.typed import Typed, call, literal

_WRONG = "a CAST goes to BIGINT, DOUBLE or STRING"


def cast_type(target: exp.Expr, place: Position, environment: Environment) -> AttributeType:
    """The type that a cast names. Raises InvalidInput."""
    kind = type_of_cast(target, place)
    if kind is None:
        raise InvalidInput(_WRONG, place)
    environment.only(target, "this", "nested", "expressions")
    return kind


def cast_to(kind: AttributeType, value: Typed, place: Position) -> Typed:
    """The value as that type. A bare NULL only gets the type. Raises InvalidInput."""
    if value.type is None:
        return literal(None, kind, place)
    if kind not in {Type.BIGINT, Type.DOUBLE, Type.STRING}:
        raise InvalidInput(_WRONG, place)
    return call(f"cast_{kind}", [value], place)
