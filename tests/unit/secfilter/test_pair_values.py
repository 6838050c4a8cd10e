"""Values of pairs: as the oracle computes them, with values at the ends of their types."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from catalog.expression import AttributeRef, Call, Expression
from catalog.pair_expressions import PAIR_FUNCTIONS, JoinRules
from catalog.plan import JoinKind
from catalog.schema import Attribute, Schema, Type, held_as
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.moving_values import text_of
from secfilter.pair_values import RowValues
from tests.differential.make_expression import EXTREME, Expressions
from tests.oracle.expressions import evaluate
from tests.oracle.values import Row, Value, microseconds

SCHEMA = Schema(
    tuple(
        Attribute(f"{window}.{index}", kind) for window in (0, 1) for index, kind in enumerate(Type)
    )
)
EXPRESSIONS = 4_000


def functions_of(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Call):
        yield expression.function
        for argument in expression.arguments:
            yield from functions_of(argument)


def text(value: Value) -> str:
    return text_of(microseconds(value) if hasattr(value, "tzinfo") else value)  # type: ignore[arg-type]


KEYS = ((AttributeRef("0.0"),), (AttributeRef("1.0"),))
RULES = JoinRules(JoinKind.LEFT, False, (0, 1), KEYS, (), ())


def computed(expression: Expression, values: list[Value]) -> tuple[str, str]:
    """The text of an expression as a row and as an argument."""
    texts_of = RowValues(2, SCHEMA, RULES, (expression,), (expression,)).computing()
    texts = [text(value) for value in values]
    half = len(texts) // 2
    sides = (SEPARATOR.join(texts[:half]), SEPARATOR.join(texts[half:]))
    return texts_of.texts([texts_of.read(number, side) for number, side in enumerate(sides)])


def test_values_are_those_of_the_oracle() -> None:
    random = Random(7)
    maker = Expressions(random, EXTREME)
    seen: set[str] = set()
    for _ in range(EXPRESSIONS):
        expression = maker.make(random.choice(list(Type)), SCHEMA, 2)
        functions = set(functions_of(expression))
        if not functions or not functions <= PAIR_FUNCTIONS:
            continue
        seen |= functions
        values = [
            random.choice([None, *EXTREME[held_as(attribute.type)]])
            for attribute in SCHEMA.attributes
        ]
        wanted = text(evaluate(expression, Row(SCHEMA, tuple(values))))
        assert computed(expression, values) == (wanted, wanted), (expression, values)
    assert seen == PAIR_FUNCTIONS


def test_the_attributes_of_a_window_without_a_tuple_are_null() -> None:
    ref = AttributeRef("1.1")
    known = Call("is_null", (ref,))
    texts_of = RowValues(2, SCHEMA, RULES, (ref, known), ()).computing()
    left = texts_of.read(0, SEPARATOR.join(NULL_MARK for _ in Type))
    assert texts_of.texts([left, None]) == (f"{NULL_MARK}{SEPARATOR}true", "")


def test_zero_has_no_sign() -> None:
    assert text_of(-0.0) == text_of(0.0) == "0.0"
