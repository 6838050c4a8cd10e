"""Takes what is below a ToStream apart: its windows, the steps for single rows, its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.plan import Aggregate, Column, Filter, Moving, MovingJoin, Project
from catalog.schema import Schema


@dataclass(frozen=True, slots=True)
class ChangingParts:
    """The parts of a changing relation.

    `base` is its Moving or MovingJoin. `steps` are the filters and projections of single rows, the
    first one first, and `schema` is that of the rows behind them. `shown` has the names of the
    results: over an aggregate they are its own names, otherwise those of `schema`.
    """

    base: CheckedNode
    steps: tuple[CheckedNode, ...]
    schema: Schema
    aggregate: Aggregate | None
    shown: tuple[str, ...]

    @classmethod
    def of(cls, relation: CheckedNode) -> ChangingParts:
        """The parts of the relation that a ToStream reads."""
        shown, below, aggregate = relation.schema.names, relation, None
        if any(isinstance(inner.node, Aggregate) for inner in relation.walk() if inner.is_changing):
            while isinstance(below.node, Project):
                # Over an aggregate a Project gives other names and another order, nothing else.
                shown = tuple(_inner_name(below.node.columns, name) for name in shown)
                below = below.inputs[0]
            if not isinstance(below.node, Aggregate):
                raise TypeError("a computed column over an aggregate of a moving window")
            aggregate, below = below.node, below.inputs[0]
        schema, steps = below.schema, []
        while not isinstance(below.node, Moving | MovingJoin):
            steps.append(below)
            below = below.inputs[0]
        return cls(below, tuple(reversed(steps)), schema, aggregate, shown)

    def windows(self) -> list[tuple[CheckedNode, tuple[CheckedNode, ...]]]:
        """Each Moving, and the steps of single tuples between it and a join."""
        sides = self.base.inputs if isinstance(self.base.node, MovingJoin) else (self.base,)
        return [(part.base, part.steps) for part in map(ChangingParts.of, sides)]

    def over_base(self) -> tuple[tuple[Expression, ...], Mapping[str, Expression]]:
        """The steps in terms of the base: their conditions, and each attribute of `schema`."""
        values: Mapping[str, Expression] = {
            name: AttributeRef(name) for name in self.base.schema.names
        }
        conditions: list[Expression] = []
        for step in self.steps:
            match step.node:
                case Filter(_, condition):
                    conditions.append(inlined(condition, values))
                case Project(_, columns):
                    values = {c.name: inlined(c.expression, values) for c in columns}
        return tuple(conditions), values


def inlined(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with each attribute replaced by what it stands for."""
    match expression:
        case AttributeRef(name):
            return values[name]
        case Literal():
            return expression
        case Call(function, arguments, position):
            return Call(function, tuple(inlined(a, values) for a in arguments), position)


def _inner_name(columns: Sequence[Column], name: str) -> str:
    found = next(column.expression for column in columns if column.name == name)
    if not isinstance(found, AttributeRef):
        raise TypeError("a computed column over an aggregate of a moving window")
    return found.name
