"""Expressions over a tuple's attributes, and their types. All languages share these classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from catalog.errors import InvalidInput, Position
from catalog.functions import FIELD, MAX_DIGITS, MAX_PATTERN, SCALAR_FUNCTIONS, ScalarFunction
from catalog.schema import AttributeType, Schema, StructType, Type, is_comparable

# This is enough for what people write, and far below the limit of recursion.
MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class AttributeRef:
    """The value of the attribute of that name."""

    name: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. TIMESTAMP values are microseconds since 1970 UTC; None is a typed NULL.

    Of a nested type there is only NULL.
    """

    value: bool | int | float | str | None
    type: AttributeType
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of the allow-list applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]
    position: Position | None = field(default=None, compare=False)


Expression = AttributeRef | Literal | Call


def type_of(expression: Expression, schema: Schema) -> AttributeType:
    """The type of an expression over tuples of `schema`.

    Raises InvalidInput, with the position in the text, for an unknown attribute, a function outside
    the allow-list, arguments of the wrong number or type, or more than MAX_DEPTH nested calls.
    """
    _refuse_deep(expression)
    return _type_of(expression, schema)


def _refuse_deep(expression: Expression) -> None:
    level: tuple[Expression, ...] = (expression,)
    for _ in range(MAX_DEPTH):
        level = tuple(part for call in level if isinstance(call, Call) for part in call.arguments)
        if not level:
            return
    raise InvalidInput(f"an expression is at most {MAX_DEPTH} calls deep", expression.position)


def _type_of(expression: Expression, schema: Schema) -> AttributeType:
    match expression:
        case AttributeRef(name, position):
            attribute = schema.get(name)
            if attribute is None:
                known = ", ".join(schema.names)
                raise InvalidInput(f"unknown attribute {name!r}; there are: {known}", position)
            return attribute.type
        case Literal(value, declared, position):
            if value is not None and not _literal_fits(value, declared):
                raise InvalidInput(f"the constant does not fit the type {declared}", position)
            return declared
        case Call(name, arguments, position):
            types = tuple(_type_of(argument, schema) for argument in arguments)
            return call_type(name, arguments, types, position)


def call_type(
    name: str,
    arguments: tuple[Expression, ...],
    types: tuple[AttributeType, ...],
    position: Position | None,
) -> AttributeType:
    """The type of a function of the allow-list applied to arguments of these types.

    Raises InvalidInput.
    """
    function = SCALAR_FUNCTIONS.get(name)
    if function is None:
        raise InvalidInput(f"function {name!r} is not in the allow-list", position)
    result = function.result(types)
    if result is None:
        given = ", ".join(map(str, types))
        why = "" if all(map(is_comparable, types)) else "; doubles inside others are not compared"
        raise InvalidInput(f"{function.name} takes {function.takes}, not ({given}){why}", position)
    if function.constant:
        _require_constant(function, arguments[-1], position)
    return _field_type(arguments[-1], types[0], position) if name == FIELD else result


def _field_type(
    named: Expression, structure: AttributeType, position: Position | None
) -> AttributeType:
    """The type of the field of a structure. Raises InvalidInput if it has no such field."""
    name = named.value if isinstance(named, Literal) else None
    fields = structure.fields if isinstance(structure, StructType) else ()
    found = next((each.type for each in fields if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in fields)
        raise InvalidInput(
            f"the structure has no field {str(name)[:80]!r}; there are: {known}",
            named.position or position,
        )
    return found


def _require_constant(
    function: ScalarFunction, given: Expression, position: Position | None
) -> None:
    """Check the last argument: a text of some characters, or a number of digits."""
    place, what = given.position or position, function.constant
    if not isinstance(given, Literal):
        raise InvalidInput(f"{what} is a constant, such as {function.example}", place)
    if isinstance(given.value, str) and len(given.value) > MAX_PATTERN:
        raise InvalidInput(
            f"{what} has at most {MAX_PATTERN} characters; look for a part of it", place
        )
    if isinstance(given.value, str) and function.check is not None:
        function.check(given.value, place)
    if given.type is Type.BIGINT and not _is_digits(given.value):
        raise InvalidInput(f"{what} is from 0 to {MAX_DIGITS}", place)


def _is_digits(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MAX_DIGITS


def _literal_fits(value: bool | float | str, declared: AttributeType) -> bool:
    match declared:
        case Type.BOOLEAN:
            return isinstance(value, bool)
        case Type.BIGINT | Type.TIMESTAMP:
            in_range = isinstance(value, int) and -(2**63) <= value < 2**63
            return in_range and not isinstance(value, bool)
        case Type.DOUBLE:
            return isinstance(value, float) and value - value == 0
        case Type.STRING:
            # These two characters separate and mark fields in lab topics.
            return isinstance(value, str) and not ({"\x1e", "\x1f"} & set(value))
        case _:
            return False


def attributes_of(expression: Expression) -> Iterator[AttributeRef]:
    """All attribute references in the expression, in reading order."""
    match expression:
        case AttributeRef():
            yield expression
        case Call(_, arguments):
            for argument in arguments:
                yield from attributes_of(argument)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a condition that AND joins."""
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts(argument))
    return (expression,)
