"""CAST(x AS type) and x::type: the types that a cast goes to, and their names in other systems."""

from __future__ import annotations

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.schema import Type
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.typed import Typed, call, literal

_CASTS = {
    exp.DType.BIGINT: Type.BIGINT,
    exp.DType.INT: Type.BIGINT,
    exp.DType.DOUBLE: Type.DOUBLE,
    exp.DType.FLOAT: Type.DOUBLE,
    exp.DType.TEXT: Type.STRING,
    exp.DType.VARCHAR: Type.STRING,
    exp.DType.TIMESTAMP: Type.TIMESTAMP,
    exp.DType.BOOLEAN: Type.BOOLEAN,
}
_WRONG = "a CAST goes to BIGINT, DOUBLE or STRING"


def cast_type(target: exp.Expr, place: Position, environment: Environment) -> Type:
    """The type that a cast names. Raises InvalidInput."""
    kind = _CASTS.get(target.this)
    if kind is None or target.expressions:
        raise InvalidInput(_WRONG, place)
    environment.only(target, "this", "nested")
    return kind


def cast_to(kind: Type, value: Typed, place: Position) -> Typed:
    """The value as that type. A bare NULL only gets the type. Raises InvalidInput."""
    if value.type is None:
        return literal(None, kind, place)
    if kind not in {Type.BIGINT, Type.DOUBLE, Type.STRING}:
        raise InvalidInput(_WRONG, place)
    return call(f"cast_{kind}", [value], place)
