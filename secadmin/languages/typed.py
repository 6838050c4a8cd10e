"""Typed expressions while they are built. Each NULL gets a type, and the size has a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, Literal, call_type
from catalog.functions import REGEXP_GROUPS, REGEXP_LIKE
from catalog.schema import AttributeType, Type

MAX_SIZE = 4_000
# As with plans, the code that works on expressions is recursive.
MAX_DEPTH = 50

# Functions whose arguments have one type: a NULL among them has the type of the others.
_ALIKE = frozenset(
    {
        *("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">="),
        *("coalesce", "greatest", "least", "array"),
    }
)
_OF_TYPE = {
    **dict.fromkeys(("and", "or", "not"), Type.BOOLEAN),
    **dict.fromkeys(("concat", "like", "ilike", "upper", "lower", "length"), Type.STRING),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "reverse"), Type.STRING),
    **dict.fromkeys((REGEXP_LIKE, *REGEXP_GROUPS), Type.STRING),
    **dict.fromkeys(("starts_with", "ends_with", "position"), Type.STRING),
}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression with its type. A bare NULL has the type None until its context gives one."""

    expression: Expression
    type: AttributeType | None
    size: int = 1
    depth: int = 1

    @property
    def position(self) -> Position | None:
        """The position of the expression in the text."""
        return self.expression.position


def attribute(name: str, kind: AttributeType, position: Position | None) -> Typed:
    """An attribute's value."""
    return Typed(AttributeRef(name, position), kind)


def literal(
    value: bool | int | float | str | None, kind: AttributeType, position: Position | None
) -> Typed:
    """A constant."""
    return Typed(Literal(value, kind, position), kind)


def null(position: Position | None) -> Typed:
    """A bare NULL. The type inside is a placeholder."""
    return Typed(Literal(None, Type.STRING, position), None)


def as_type(value: Typed, kind: AttributeType) -> Typed:
    """The value itself, or a NULL of that type if the value is a bare NULL."""
    return value if value.type is not None else literal(None, kind, value.position)


def known(value: Typed) -> AttributeType:
    """The value's type. Raises InvalidInput for a bare NULL."""
    if value.type is None:
        raise InvalidInput("this NULL has no type; write CAST(NULL AS BIGINT)", value.position)
    return value.type


def call(function: str, arguments: Sequence[Typed], position: Position | None) -> Typed:
    """A call of a function of the allow-list.

    Raises InvalidInput if the arguments do not fit the function, or the expression is too large.
    """
    given = _with_types(function, arguments)
    size = 1 + sum(argument.size for argument in given)
    depth = 1 + max((argument.depth for argument in given), default=0)
    if size > MAX_SIZE:
        raise InvalidInput(
            f"the expression has more than {MAX_SIZE} parts (a BETWEEN or IN repeats its left "
            "side); compute a part of it in a derived table",
            position,
        )
    if depth > MAX_DEPTH:
        raise InvalidInput(f"the expression is nested more than {MAX_DEPTH} deep", position)
    expressions = tuple(argument.expression for argument in given)
    kind = call_type(function, expressions, tuple(known(argument) for argument in given), position)
    return Typed(Call(function, expressions, position), kind, size, depth)


def _with_types(function: str, arguments: Sequence[Typed]) -> list[Typed]:
    if all(argument.type is not None for argument in arguments):
        return list(arguments)
    if function == "case":
        conditions = [as_type(argument, Type.BOOLEAN) for argument in arguments[:-1:2]]
        values = _alike([*arguments[1:-1:2], arguments[-1]])
        pairs = zip(conditions, values, strict=False)
        return [*(part for pair in pairs for part in pair), values[-1]]
    if function in _ALIKE:
        return _alike(arguments)
    if function in _OF_TYPE:
        return [as_type(argument, _OF_TYPE[function]) for argument in arguments]
    return list(arguments)


def _alike(arguments: Sequence[Typed]) -> list[Typed]:
    kinds = [argument.type for argument in arguments if argument.type is not None]
    return [as_type(argument, kinds[0]) for argument in arguments] if kinds else list(arguments)
