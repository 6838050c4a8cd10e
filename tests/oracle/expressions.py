"""Evaluating an expression over a row."""

from __future__ import annotations

from math import isfinite

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.schema import Type
from tests.oracle.scalar import FUNCTIONS
from tests.oracle.types import type_of
from tests.oracle.values import Row, Value, timestamp


def evaluate(expression: Expression, row: Row) -> Value:
    """The value of an expression over a row; NULL wherever there is none."""
    match expression:
        case AttributeRef(name):
            return row[name]
        case Literal(int(value), Type.TIMESTAMP):
            return timestamp(value)
        case Literal(value):
            return value
        case Call(name, arguments):
            values = [evaluate(argument, row) for argument in arguments]
            if any(type_of(argument, row.schema) is Type.DOUBLE for argument in arguments):
                values = [widened(value) for value in values]
            return total(FUNCTIONS[name](*values))


def widened(value: Value) -> Value:
    """A BIGINT as a DOUBLE, as it is where it meets one; anything else as it is."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def total(value: Value) -> Value:
    """The value, or NULL for a number that its type cannot hold."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return value
