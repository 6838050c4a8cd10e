"""The outputs of a filter box share out its tuples: each leaves at the first that is true."""

from __future__ import annotations

from random import Random
from xml.sax.saxutils import quoteattr

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.expression import Expression
from catalog.plan import Filter
from catalog.schema import Type, held_as
from secadmin.languages import parse_borealis
from secadmin.languages.writing.expression_text import expression_text
from tests.differential.make_expression import MODERATE, Expressions
from tests.oracle.expressions import evaluate
from tests.oracle.values import Row, Value
from tests.unit.secadmin.languages.streams import Streams, relation
from tests.unit.secadmin.languages.test_borealis import TRADE

_SCHEMA = relation("trades").schema


def _conditions(expressions: list[Expression], ports: int) -> list[Expression]:
    """The conditions of the outputs, in their order."""
    names = [f"out{port}" for port in range(ports)]
    parameters = "".join(
        f'<parameter name="expression.{number}" value={quoteattr(expression_text(each))}/>'
        for number, each in enumerate(expressions)
    )
    has_else = int(ports > len(expressions))
    text = (
        '<borealis><input stream="trades" schema="Trade"/>'
        + "".join(f'<output stream="{name}"/>' for name in names)
        + f'{TRADE}<box name="split" type="filter"><in stream="trades"/>'
        + "".join(f'<out stream="{name}"/>' for name in names)
        + f'{parameters}<parameter name="pass-on-false-port" value="{has_else}"/></box></borealis>'
    )
    roots = [checked.plan.root for _, checked in parse_borealis(text, Streams()).outputs]
    assert all(isinstance(root, Filter) for root in roots)
    return [root.condition for root in roots if isinstance(root, Filter)]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 4), st.booleans())
def test_each_tuple_leaves_at_the_first_output_that_is_true(
    seed: int, count: int, has_else: bool
) -> None:
    random = Random(seed)
    make = Expressions(random, MODERATE)
    expressions = [make.make(Type.BOOLEAN, _SCHEMA, 2) for _ in range(count)]
    conditions = _conditions(expressions, count + has_else)
    for _ in range(10):
        values: list[Value] = [
            None if random.random() < 0.2 else random.choice(MODERATE[held_as(each.type)])
            for each in _SCHEMA.attributes
        ]
        row = Row(_SCHEMA, tuple(values))
        first = next((n for n, each in enumerate(expressions) if evaluate(each, row) is True), None)
        wanted = [count] if first is None and has_else else [first] if first is not None else []
        left_at = [n for n, each in enumerate(conditions) if evaluate(each, row) is True]
        assert left_at == wanted
