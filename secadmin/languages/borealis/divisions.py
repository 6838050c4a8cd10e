"""Notes divisions whose result differs from that of Borealis."""

from __future__ import annotations

from catalog.checked_plan import CheckedNode
from catalog.expression import Call, Expression, type_of
from catalog.plan import Aggregate, Filter, Join, Node, Project
from catalog.schema import Schema, Type
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.notes import Notes

_WHOLE = (Type.BIGINT, Type.BIGINT)


def note_divisions(box: Box, made: CheckedNode, notes: Notes) -> None:
    """Note it if a box divides whole numbers. The result is a double, and whole in Borealis."""
    below = made.inputs[0] if made.inputs else made
    # The box of an aggregate or a join is two nodes.
    nodes = [made, below] if isinstance(below.node, Aggregate | Join) else [made]
    if any(_divides(each, _schema(node)) for node in nodes for each in _expressions(node.node)):
        notes.add(
            f"box {box.name[:80]!r}: / of two whole numbers gives a double, with its fraction",
            box.position,
        )


def _schema(made: CheckedNode) -> Schema:
    """The attributes that the expressions of a node name."""
    return made.schema if isinstance(made.node, Join) else made.inputs[0].schema


def _expressions(node: Node) -> list[Expression]:
    match node:
        case Filter(_, condition):
            return [condition]
        case Project(_, columns):
            return [column.expression for column in columns]
        case Aggregate(_, _, aggregations):
            return [each.argument for each in aggregations if each.argument is not None]
        case Join(condition=condition):
            return [] if condition is None else [condition]
        case _:
            return []


def _divides(expression: Expression, schema: Schema) -> bool:
    if not isinstance(expression, Call):
        return False
    if expression.function == "/":
        types = tuple(type_of(argument, schema) for argument in expression.arguments)
        if types == _WHOLE:
            return True
    return any(_divides(argument, schema) for argument in expression.arguments)
