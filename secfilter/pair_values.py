"""Values of the rows of a join of moving windows, computed in Python from texts.

The rules are those of `secfilter.expressions`, for the functions that `catalog.pair_expressions`
allows over several windows. No result is an error: where there is none, it is NULL, here None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.expression import AttributeRef, Call, Expression, Literal, attributes_of, type_of
from catalog.functions import MAX_TEXT_BYTES
from catalog.pair_expressions import JoinRules, RowsBelow, window_of
from catalog.schema import AttributeType, Schema, Type
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.moving_values import Value, text_of, value_of

# The texts of a tuple's arguments, and their values.
Side = tuple[Sequence[str], Sequence[Value | None]]
# What the tuples of a row have, one of each window. An outer join gives rows without some of them.
Sides = Sequence[Side | None]
# Computes a value of a row.
Compute = Callable[[Sides], Value | None]
MakeText = Callable[[Sides], str]
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class RowValues:
    """What is computed for each row of a join.

    `schema` has the values of all windows, such as `0.2`. `windows` is their number.
    """

    windows: int
    schema: Schema
    rules: JoinRules
    shown: tuple[Expression, ...]
    arguments: tuple[Expression, ...]

    @property
    def copies(self) -> int:
        """How often the text of a row has a value of its tuples at most."""
        return max(1, sum(1 for each in self._every() for _ in attributes_of(each)))

    @property
    def constants(self) -> int:
        """How long the constants in the text of a row are at most."""
        return sum(_constants(each) for each in self._every())

    def _every(self) -> tuple[Expression, ...]:
        return (*self.shown, *self.arguments)

    def computing(self) -> RowTexts:
        """The functions that compute it. They cannot be sent to a worker, and are made there."""
        types: list[list[AttributeType]] = [[] for _ in range(self.windows)]
        for each in self.schema.attributes:
            types[window_of(AttributeRef(each.name))[0]].append(each.type)
        return RowTexts(
            types,
            [_text_maker(each, self.schema) for each in self.shown],
            [_text_maker(each, self.schema) for each in self.arguments],
        )


@dataclass(frozen=True, slots=True)
class RowTexts:
    """Computes the texts of rows from the texts of their tuples."""

    types: Sequence[Sequence[AttributeType]]
    shown: Sequence[MakeText]
    arguments: Sequence[MakeText]

    def read(self, window: int, arguments: str) -> Side:
        """The values of a tuple's arguments."""
        kinds = self.types[window]
        texts = arguments.split(SEPARATOR) if kinds else []
        return texts, [value_of(text, kind) for text, kind in zip(texts, kinds, strict=True)]

    def texts(self, sides: Sides) -> tuple[str, str]:
        """The text and the arguments of a row."""
        shown, arguments = (
            SEPARATOR.join([make(sides) for make in each]) for each in (self.shown, self.arguments)
        )
        return shown, arguments


def _constants(expression: Expression) -> int:
    match expression:
        case Literal(value):
            return len(str(value))
        case Call(_, arguments):
            return sum(map(_constants, arguments))
        case _:
            return 0


def _text_maker(expression: Expression, schema: Schema) -> MakeText:
    """The function that computes the text of an expression over the values of all windows."""
    if isinstance(expression, AttributeRef):
        # The text stays as the engine made it.
        number, index = _place(expression)

        def text(sides: Sides) -> str:
            side = sides[number]
            return NULL_MARK if side is None else side[0][index]

        return text
    compute = computation(expression, schema)
    return lambda sides: text_of(compute(sides))


def row_reader(below: RowsBelow) -> Callable[[str], tuple[bool, str, str]]:
    """The function that reads the text of a row of a relation below.

    It gives whether the row passes, and the texts of its row and of its arguments above.
    """
    kinds = [each.type for each in below.schema.attributes]
    conditions = [computation(each, below.schema) for each in below.conditions]
    made = [
        [_written(each, below.schema) for each in several]
        for several in (below.row, below.arguments)
    ]

    def read(text: str) -> tuple[bool, str, str]:
        texts = text.split(SEPARATOR)
        side = texts, [value_of(each, kind) for each, kind in zip(texts, kinds, strict=True)]
        passes = all(test((side,)) is True for test in conditions)
        row, arguments = (SEPARATOR.join([make((side,)) for make in each]) for each in made)
        return passes, row, arguments

    return read


def _written(expression: Expression, schema: Schema) -> MakeText:
    """The function that computes a text in which equal numbers are equal."""
    if type_of(expression, schema) is Type.DOUBLE:
        compute = computation(expression, schema)
        return lambda sides: text_of(compute(sides))
    return _text_maker(expression, schema)


def rewritten(texts: str, doubles: Sequence[int]) -> str:
    """The texts of several values, with the numbers at these places as Python writes them."""
    if not doubles:
        return texts
    several = texts.split(SEPARATOR)
    for place in doubles:
        several[place] = text_of(value_of(several[place], Type.DOUBLE))
    return SEPARATOR.join(several)


def _place(ref: AttributeRef) -> tuple[int, int]:
    number, index = window_of(ref)
    return number, int(index)


def computation(expression: Expression, schema: Schema, first: int = 0) -> Compute:
    """The function that computes an expression over the values of the windows from `first` on."""
    match expression:
        case AttributeRef():
            number, index = _place(expression)
            number -= first

            def value(sides: Sides) -> Value | None:
                side = sides[number]
                return None if side is None else side[1][index]

            return value
        case Literal(constant):
            return lambda sides: constant
        case Call(function, arguments):
            parts = [computation(argument, schema, first) for argument in arguments]
            wide = any(type_of(argument, schema) is Type.DOUBLE for argument in arguments)
            apply = _RULES[function]

            def compute(sides: Sides) -> Value | None:
                values = [part(sides) for part in parts]
                return _in_range(apply(*map(_widened, values) if wide else values))

            return compute


def _widened(value: Value | None) -> Value | None:
    """A BIGINT as a DOUBLE, because it meets one."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _in_range(value: Value | None) -> Value | None:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return None
    return value


Rule = Callable[..., Value | None]


def _strict(function: Callable[..., Value | None]) -> Rule:
    """NULL if any argument is NULL."""

    def call(*values: Value | None) -> Value | None:
        return None if None in values else function(*values)

    return call


def _divide(one: float, other: float) -> float | None:
    return float(one) / float(other) if other else None


def _multiply(one: float, other: float) -> float | None:
    return one * other


def _concat(*texts: str) -> str | None:
    length = sum(len(text.encode()) for text in texts)
    return "".join(texts) if length <= MAX_TEXT_BYTES else None


def _and(*values: Value | None) -> Value | None:
    return False if False in values else None if None in values else True


def _or(*values: Value | None) -> Value | None:
    return True if True in values else None if None in values else False


def _coalesce(*values: Value | None) -> Value | None:
    return next((value for value in values if value is not None), None)


def _case(*parts: Value | None) -> Value | None:
    pairs = zip(parts[:-1:2], parts[1:-1:2], strict=True)
    return next((then for when, then in pairs if when is True), parts[-1])


def _known(choose: Callable[[list[Any]], Value]) -> Rule:
    """The choice among the values that are not NULL."""

    def call(*values: Value | None) -> Value | None:
        given = [value for value in values if value is not None]
        return choose(given) if given else None

    return call


_RULES: dict[str, Rule] = {
    "+": _strict(operator.add),
    "-": _strict(operator.sub),
    "*": _strict(_multiply),
    "/": _strict(_divide),
    "negate": _strict(operator.neg),
    "abs": _strict(abs),
    "micros_between": _strict(operator.sub),
    "concat": _strict(_concat),
    "=": _strict(operator.eq),
    "<>": _strict(operator.ne),
    "<": _strict(operator.lt),
    "<=": _strict(operator.le),
    ">": _strict(operator.gt),
    ">=": _strict(operator.ge),
    "not": _strict(operator.not_),
    "and": _and,
    "or": _or,
    "is_null": lambda value: value is None,
    "coalesce": _coalesce,
    "case": _case,
    "greatest": _known(max),
    "least": _known(min),
}
