"""What the operator of event patterns computes, and what the engine computes for it.

The engine computes the largest parts of conditions that read the current row alone, and the
arguments of readings. What compares a row with other rows of the match is computed in Python, with
PAIR_FUNCTIONS only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.aggregates import AGGREGATE_FUNCTIONS
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, attributes_of, type_of
from catalog.pair_expressions import PAIR_FUNCTIONS
from catalog.pattern import CLASSIFIER, COUNT, FIRST, LAST, PATTERN_AGGREGATES, Reading
from catalog.plan import Match
from catalog.schema import Attribute, AttributeType, Schema, Type

# Conditions name the values of the current row like those of a window, and readings like those of
# another one.
_VALUES, READINGS = 0, 1
# Each row costs so many steps at most for each condition.
MAX_PARTS = 200


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A reading of which the argument is the `argument`-th value of each row.

    Without an argument it is count(*), or CLASSIFIER.
    """

    function: str
    variable: str | None
    argument: int | None
    offset: int = 0
    moved: int = 0
    final: bool = False

    @property
    def is_of_one_row(self) -> bool:
        """Whether it is a value of one row: FIRST, LAST, PREV or NEXT."""
        return self.function in (FIRST, LAST)

    @property
    def is_from_current(self) -> bool:
        """Whether it is of the current row, or of one so many rows before or behind it."""
        return self.function == LAST and self.variable is None and not self.offset


def reading_type(reading: Reading, schema: Schema) -> AttributeType:
    """The type of a reading over rows of the schema. Raises InvalidInput."""
    if reading.function == CLASSIFIER:
        return Type.STRING
    if reading.argument is None:
        if reading.function != COUNT:
            raise InvalidInput(f"{reading.function} needs an argument")
        return Type.BIGINT
    argument = type_of(reading.argument, schema)
    if reading.function not in PATTERN_AGGREGATES:
        return argument
    result = AGGREGATE_FUNCTIONS[reading.function](argument)
    if result is None:
        raise InvalidInput(
            f"{reading.function} does not take a {argument}", reading.argument.position
        )
    return result


class MatchExpressions:
    """The expressions of a Match over rows of `schema`, split between the engine and Python.

    `values` are computed for each row by the engine. In `conditions`, `0.<n>` is the n-th value of
    the current row, and `1.<n>` the n-th reading. If each row of a match is a result, `shown` has
    the numbers of the values that are its attributes. A kept row has its values in this order: so
    what is added comes last. Raises InvalidInput, with the position.
    """

    def __init__(self, node: Match, schema: Schema) -> None:
        self._schema = schema
        self._types = [reading_type(each, schema) for each in node.readings]
        self._names = {each.name: number for number, each in enumerate(node.readings)}
        self._found: dict[Expression, int] = {}
        self._parts = 0
        self.conditions: Mapping[str, Expression] = {
            each.variable: self._over_match(each.condition) for each in node.definitions
        }
        self.readings = tuple(map(self._read, node.readings))
        self.measures = tuple(map(self._read, node.measures))
        self.shown = tuple(self._value(AttributeRef(name)) for name in schema.names if node.per_row)

    @property
    def values(self) -> tuple[Expression, ...]:
        """What the engine computes for each row."""
        return tuple(self._found)

    @property
    def types(self) -> tuple[AttributeType, ...]:
        """The types of the values."""
        return tuple(type_of(each, self._schema) for each in self._found)

    def schema(self) -> Schema:
        """The types of all that the conditions read."""
        own = [Attribute(f"{_VALUES}.{n}", kind) for n, kind in enumerate(self.types)]
        others = [Attribute(f"{READINGS}.{n}", kind) for n, kind in enumerate(self._types)]
        return Schema((*own, *others))

    def _value(self, expression: Expression) -> int:
        return self._found.setdefault(expression, len(self._found))

    def _read(self, each: Reading) -> ReadValue:
        argument = None if each.argument is None else self._value(each.argument)
        return ReadValue(
            each.function, each.variable, argument, each.offset, each.moved, each.final
        )

    def _over_match(self, expression: Expression) -> Expression:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise InvalidInput(
                f"the conditions of a pattern have at most {MAX_PARTS} parts that compare rows "
                "with each other; use fewer",
                expression.position,
            )
        if isinstance(expression, Literal):
            return expression
        if all(ref.name not in self._names for ref in attributes_of(expression)):
            return AttributeRef(f"{_VALUES}.{self._value(expression)}", expression.position)
        match expression:
            case AttributeRef(name, position):
                return AttributeRef(f"{READINGS}.{self._names[name]}", position)
            case Call(function, arguments, position) if function in PAIR_FUNCTIONS:
                return Call(function, tuple(map(self._over_match, arguments)), position)
            case Call(function, _, position):
                raise InvalidInput(
                    f"in DEFINE {function.upper()} takes values of the current row only, and not "
                    "of other rows of the match; apply it inside of FIRST, LAST, PREV or NEXT",
                    position,
                )
