"""Values of pairs: as the oracle computes them, with values at the ends of their types."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from catalog.expression import AttributeRef, Call, Expression
from catalog.pair_expressions import PAIR_FUNCTIONS
from catalog.schema import Attribute, Schema, Type
from secfilter.lab import SEPARATOR
from secfilter.moving_values import text_of
from secfilter.pair_values import PairValues
from tests.differential.make_expression import EXTREME, Expressions
from tests.oracle.expressions import evaluate
from tests.oracle.values import Row, Value, microseconds

SCHEMA = Schema(
    tuple(
        Attribute(f"{side}.{index}", kind)
        for side in ("left", "right")
        for index, kind in enumerate(Type)
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


def computed(expression: Expression, values: list[Value]) -> tuple[str, str] | None:
    """The text of an expression as a row and as an argument, with itself as a condition."""
    pairing = PairValues(SCHEMA, (), (expression,), (expression,)).pairing()
    texts = [text(value) for value in values]
    half = len(texts) // 2
    sides = (SEPARATOR.join(texts[:half]), SEPARATOR.join(texts[half:]))
    return pairing.pair(pairing.read(0, sides[0]), pairing.read(1, sides[1]))


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
            random.choice([None, *EXTREME[attribute.type]]) for attribute in SCHEMA.attributes
        ]
        wanted = text(evaluate(expression, Row(SCHEMA, tuple(values))))
        assert computed(expression, values) == (wanted, wanted), (expression, values)
    assert seen == PAIR_FUNCTIONS


@pytest.mark.parametrize(("value", "passes"), [(True, True), (False, False), (None, False)])
def test_a_pair_passes_if_its_conditions_are_true(value: bool | None, passes: bool) -> None:
    schema = Schema((Attribute("left.0", Type.BOOLEAN),))
    ref = AttributeRef("left.0")
    pairing = PairValues(schema, (ref, ref), (), (ref,)).pairing()
    found = pairing.pair(pairing.read(0, text_of(value)), pairing.read(1, ""))
    assert found == (("", "true") if passes else None)


def test_zero_has_no_sign() -> None:
    assert text_of(-0.0) == text_of(0.0) == "0.0"
