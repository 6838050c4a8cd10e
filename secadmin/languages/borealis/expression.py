"""Expressions in parameters. They are those of SQL, in the value of one XML attribute."""

from __future__ import annotations

from sqlglot import exp

from catalog.errors import InvalidInput
from secadmin.languages.borealis.parameters import Parameter
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.syntax import parse_expression
from secadmin.languages.typed import Typed


def read(parameter: Parameter, scope: Scope, where: str) -> Typed:
    """Read the expression of a parameter over a scope. Raises InvalidInput, with its position."""
    tree, reader = parsed(parameter, scope, where)
    return reader.read(tree)


def parsed(parameter: Parameter, scope: Scope, where: str) -> tuple[exp.Expr, Reader]:
    """The syntax tree of a parameter's expression, and its reader. Raises InvalidInput."""
    if not parameter.text.strip():
        raise InvalidInput(f"{parameter.name} is empty", parameter.place())
    place = parameter.value.place
    tree = parse_expression(parameter.text, place)
    return tree, Reader(Environment(place), scope, NoCalls(where))
