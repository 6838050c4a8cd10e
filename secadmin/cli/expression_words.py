"""Expressions of a plan in the form that people write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.schema import Type

_INFIX = frozenset(
    {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", "like", "ilike"}
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expression_words(expression: Expression) -> str:
    """The expression in the form of SQL. Nested parts are in parentheses.

    >>> expression_words(Call(">", (AttributeRef("price"), Literal(5, Type.BIGINT))))
    'price > 5'
    """
    match expression:
        case AttributeRef(name):
            return name
        case Literal():
            return _literal(expression)
        case Call(name, arguments) if name in _INFIX:
            return f" {name.upper()} ".join(map(_nested, arguments))
        case Call("negate", (argument,)):
            return f"-{_nested(argument)}"
        case Call("not", (argument,)):
            return f"NOT {_nested(argument)}"
        case Call("is_null", (argument,)):
            return f"{_nested(argument)} IS NULL"
        case Call("element", (whole, place)):
            return f"{_nested(whole)}[{expression_words(place)}]"
        case Call("field", (whole, Literal(str(name)))):
            return f"{_nested(whole)}.{name}"
        case Call(name, arguments):
            return f"{name}({', '.join(map(expression_words, arguments))})"


def _nested(expression: Expression) -> str:
    words = expression_words(expression)
    inner = isinstance(expression, Call) and expression.function in {*_INFIX, "not", "is_null"}
    return f"({words})" if inner else words


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if literal.type is Type.TIMESTAMP:
        try:
            at = _EPOCH + timedelta(microseconds=int(value))
        except OverflowError:  # beyond what a calendar holds
            return f"TIMESTAMP {value} µs"
        return f"TIMESTAMP '{at.replace(tzinfo=None).isoformat(sep=' ')}'"
    return str(value)
