"""Takes what is below a ToStream apart: windows, joins of them, steps for rows, groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.plan import (
    Aggregate,
    Column,
    Filter,
    Moving,
    MovingJoin,
    Project,
    Ranked,
    Union,
)
from catalog.schema import Schema

Steps = tuple[CheckedNode, ...]


@dataclass(frozen=True, slots=True)
class WindowPart:
    """A moving window, and the filters and projections of its single tuples, the first one first.

    `number` is its place among the windows of the relation. `schema` is that behind the steps.
    """

    number: int
    moving: CheckedNode
    steps: Steps
    schema: Schema

    def windows(self) -> Iterator[WindowPart]:
        """The window itself."""
        yield self


@dataclass(frozen=True, slots=True)
class JoinPart:
    """A join of two parts, and the filters and projections of its rows, the first one first."""

    node: MovingJoin
    left: Part
    right: Part
    steps: Steps

    def windows(self) -> Iterator[WindowPart]:
        """The windows of both sides, those of the left one first."""
        yield from self.left.windows()
        yield from self.right.windows()


Part = WindowPart | JoinPart


@dataclass(frozen=True, slots=True)
class ChangingParts:
    """The parts of a changing relation.

    `branches` are those of its Union. If it has none, there is one. `schema` is that of the rows
    below `top`, which is the aggregate, or what orders the rows. `shown` has the names of the
    results: those of the top, or of `schema` if there is no top.
    """

    branches: tuple[Part, ...]
    schema: Schema
    top: Aggregate | Ranked | None
    shown: tuple[str, ...]

    @classmethod
    def of(cls, relation: CheckedNode) -> ChangingParts:
        """The parts of the relation that a ToStream reads."""
        shown, below = relation.schema.names, relation
        top: Aggregate | Ranked | None = None
        tops = (each for each in relation.walk() if isinstance(each.node, Aggregate | Ranked))
        if any(each.is_changing for each in tops):
            while isinstance(below.node, Project):
                # Over the top a Project gives other names and another order, nothing else.
                shown = tuple(_inner_name(below.node.columns, name) for name in shown)
                below = below.inputs[0]
            if not isinstance(below.node, Aggregate | Ranked):
                raise TypeError("a computed column over an aggregate of a moving window")
            top, below = below.node, below.inputs[0]
        return cls(_branches(below), below.schema, top, shown)

    def read(self) -> tuple[list[Expression], list[Expression]]:
        """What of a row below the top is shown, or is the key of a group; and what else is read."""
        match self.top:
            case None:
                return [AttributeRef(name) for name in self.schema.names], []
            case Aggregate(_, keys, aggregations):
                arguments = (each.argument for each in aggregations)
                return [key.expression for key in keys], [a for a in arguments if a is not None]
            case Ranked(_, partition, order, _, _, neighbours):
                shown = [name for name in self.schema.names if name in self.shown]
                others = [each.attribute for each in neighbours]
                read = [*partition, *(key.attribute for key in order), *others]
                return [AttributeRef(name) for name in shown], [*read]

    @property
    def join(self) -> JoinPart | None:
        """The join that makes the rows, or None."""
        (first, *_) = self.branches
        return first if isinstance(first, JoinPart) else None

    def windows(self) -> list[WindowPart]:
        """All windows, in the order of their numbers."""
        return [window for branch in self.branches for window in branch.windows()]


def _branches(relation: CheckedNode) -> tuple[Part, ...]:
    base, above = _base(relation)
    if not isinstance(base.node, Union):
        return (_part(relation, 0, ()),)
    # Each branch has the attributes of the union, so a step over the union is one over each branch.
    return tuple(_part(branch, number, above) for number, branch in enumerate(base.inputs))


def _base(relation: CheckedNode) -> tuple[CheckedNode, Steps]:
    """What is below the steps of rows, and these steps."""
    steps = []
    while isinstance(relation.node, Filter | Project):
        steps.append(relation)
        relation = relation.inputs[0]
    return relation, tuple(reversed(steps))


def _part(relation: CheckedNode, number: int, above: Steps) -> Part:
    """A part whose first window has this number. `above` are further steps over it."""
    base, steps = _base(relation)
    if isinstance(base.node, MovingJoin):
        left = _part(base.inputs[0], number, ())
        right = _part(base.inputs[1], number + len([*left.windows()]), ())
        return JoinPart(base.node, left, right, steps + above)
    if not isinstance(base.node, Moving):
        raise TypeError("no moving window")
    return WindowPart(number, base, steps + above, (above or (relation,))[-1].schema)


def through_steps(
    steps: Sequence[CheckedNode], values: Mapping[str, Expression]
) -> tuple[tuple[Expression, ...], Mapping[str, Expression]]:
    """The conditions of the steps, and each attribute behind them, in terms of `values`."""
    conditions: list[Expression] = []
    for step in steps:
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
