"""The type of an expression, by the oracle's own table."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.schema import ArrayType, AttributeType, MapType, Schema, StructType, Type

_WIDER = frozenset({"+", "-", "*", "%", "negate", "abs"})
_DOUBLE = frozenset({"/", "sqrt", "cast_double"})
_BIGINT = frozenset({"floor", "ceil", "length", "position", "cast_bigint", "micros_between"}) | {
    "cardinality"
}
_TIME_PARTS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_STRING = frozenset(
    {
        *("upper", "lower", "trim", "ltrim", "rtrim", "reverse"),
        *("concat", "substring", "cast_string"),
    }
)


def type_of(expression: Expression, schema: Schema) -> AttributeType:
    """The type of a well-formed expression over rows of a schema."""
    match expression:
        case AttributeRef(name):
            return next(a.type for a in schema.attributes if a.name == name)
        case Literal(_, kind):
            return kind
        case Call("field", (whole, Literal(name))):
            structure = type_of(whole, schema)
            fields = structure.fields if isinstance(structure, StructType) else ()
            return next(each.type for each in fields if each.name == name)
        case Call(name, arguments):
            return _result(name, [type_of(argument, schema) for argument in arguments])


def _result(name: str, types: list[AttributeType]) -> AttributeType:
    match name, types:
        case "element", [ArrayType(inner) | MapType(inner), _]:
            return inner
        case "map_values", [MapType(inner)]:
            return ArrayType(inner)
        case "map_keys", _:
            return ArrayType(Type.STRING)
        case "array", _:
            return ArrayType(_widest(types))
    if name == "round":
        return types[0]
    if name.startswith("start_of_"):
        return Type.TIMESTAMP
    if name in _WIDER | {"coalesce", "greatest", "least"}:
        return _widest(types)
    if name == "case":
        return _widest([*types[1:-1:2], types[-1]])
    if name in _DOUBLE:
        return Type.DOUBLE
    if name in _BIGINT | _TIME_PARTS:
        return Type.BIGINT
    return Type.STRING if name in _STRING else Type.BOOLEAN


def _widest(types: Iterable[AttributeType]) -> AttributeType:
    """The one type of all; where BIGINT and DOUBLE meet, DOUBLE."""
    found = set(types)
    return Type.DOUBLE if Type.DOUBLE in found else found.pop()
