"""A single expression over a stream's attributes, as policies and label rules have it, in SQL."""

from __future__ import annotations

from catalog.errors import InvalidInput
from catalog.expression import Expression
from catalog.schema import Schema, Type
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.expressions.syntax import parse_expression
from secadmin.languages.text import check_text
from secadmin.languages.typed import Typed, as_type

MAX_BYTES = 4096


def parse_condition(text: str, schema: Schema) -> Expression:
    """The condition of a text such as `price > 5 AND symbol = 'ACME'`.

    Raises InvalidInput, with the position in the text.
    """
    return as_type(parse_single(text, schema, "a policy"), Type.BOOLEAN).expression


def parse_single(text: str, schema: Schema, where: str, max_bytes: int = MAX_BYTES) -> Typed:
    """The expression of a text over the attributes of a schema. Errors say `where` it is.

    Raises InvalidInput, with the position in the text.
    """
    lines = check_text(text, max_bytes)
    environment = Environment(lines.position)
    scope = Scope((Table.of("", schema),))
    try:
        tree = parse_expression(text, lines.position)
        return Reader(environment, scope, NoCalls(where)).read(tree)
    except RecursionError:
        raise InvalidInput(f"the expression of {where} is nested too deeply") from None
