"""Expressions in parameters. They are those of SQL, in the value of one XML attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput
from catalog.schema import Type
from secadmin.languages.borealis.clock import Clock
from secadmin.languages.borealis.flow import Flow
from secadmin.languages.borealis.moments import with_moments
from secadmin.languages.borealis.parameters import Parameter
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.expressions.syntax import parse_expression
from secadmin.languages.typed import Typed


@dataclass(frozen=True, slots=True)
class Operands:
    """What an expression can name. `times` has the times that the diagram counts in numbers.

    A key of `times` is a qualifier ("" for none) and a name.
    """

    scope: Scope
    times: Mapping[tuple[str, str], Clock]


def operands_of(source: Flow) -> Operands:
    """The operands of a box with one input."""
    table = Table.of("", source.built.schema)
    return Operands(Scope((table,)), _times("", source))


def operands_of_sides(sides: Mapping[str, Flow]) -> Operands:
    """The operands of a join, whose attributes are called `<side>.<name>` in the plan."""
    tables = [Table.of(side, f.built.schema, prefix=f"{side}.") for side, f in sides.items()]
    times = {key: clock for side, f in sides.items() for key, clock in _times(side, f).items()}
    return Operands(Scope(tuple(tables)), times)


def _times(side: str, source: Flow) -> dict[tuple[str, str], Clock]:
    """The times of a flow. Those that windows give count as the event time does."""
    clock = source.clock
    if clock is None or not clock.number:
        return {}
    times = [a.name for a in source.built.schema.attributes if a.type is Type.TIMESTAMP]
    return {(side, name): clock for name in times}


def read(parameter: Parameter, operands: Operands, where: str) -> Typed:
    """Read the expression of a parameter. Raises InvalidInput, with its position."""
    tree, reader = parsed(parameter, operands, where)
    return reader.read(tree)


def parsed(parameter: Parameter, operands: Operands, where: str) -> tuple[exp.Expr, Reader]:
    """The syntax tree of a parameter's expression, and its reader. Raises InvalidInput."""
    if not parameter.text.strip():
        raise InvalidInput(f"{parameter.name} is empty", parameter.place())
    place = parameter.value.place
    tree = with_moments(parse_expression(parameter.text, place), operands.times, place)
    return tree, Reader(Environment(place), operands.scope, NoCalls(where))
