"""Takes what is below a ToStream apart: windows, joins of them, steps for rows, groups.

Groups, and rows in an order, may be below other operators. They are then a relation of their own,
whose rows are read as the tuples of a window are.
"""

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
from catalog.stable_names import depends_on_others

Steps = tuple[CheckedNode, ...]


@dataclass(frozen=True, slots=True)
class WindowPart:
    """A moving window, and the filters and projections of its single tuples, the first one first.

    `number` is its place among the sides of its relation, and `window` that among all windows of
    the query. `schema` is that behind the steps.
    """

    number: int
    window: int
    moving: CheckedNode
    steps: Steps
    schema: Schema

    def sides(self) -> Iterator[SidePart]:
        """The window itself."""
        yield self

    def windows(self) -> Iterator[WindowPart]:
        """The window itself."""
        yield self


@dataclass(frozen=True, slots=True)
class RelationPart:
    """A relation below, and the filters and projections of its rows, the first one first.

    `number` is its place among the sides of the relation above it. `schema` is that behind the
    steps.
    """

    number: int
    parts: ChangingParts
    steps: Steps
    schema: Schema

    def sides(self) -> Iterator[SidePart]:
        """The relation itself."""
        yield self

    def windows(self) -> Iterator[WindowPart]:
        """The windows of the relation."""
        yield from self.parts.windows()


SidePart = WindowPart | RelationPart


@dataclass(frozen=True, slots=True)
class JoinPart:
    """A join of two parts, and the filters and projections of its rows, the first one first."""

    node: MovingJoin
    left: Part
    right: Part
    steps: Steps

    def sides(self) -> Iterator[SidePart]:
        """What is joined: windows and relations, those of the left side first."""
        yield from self.left.sides()
        yield from self.right.sides()

    def windows(self) -> Iterator[WindowPart]:
        """The windows of both sides, those of the left one first."""
        yield from self.left.windows()
        yield from self.right.windows()


Part = WindowPart | RelationPart | JoinPart


@dataclass(frozen=True, slots=True)
class ChangingParts:
    """The parts of a changing relation.

    `branches` are those of its Union. If it has none, there is one. `schema` is that of the rows
    below `top`, which is the aggregate, or what orders the rows. `shown` has the names of what is
    shown of `results`: those of the top, or `schema` if there is no top. `names` are the names that
    the relation itself gives these, in the same order. If it is `loose`, each row depends on all
    rows of the relations below (`catalog.stable_names`). `event_time` is the attribute of `schema`
    that has it, or None.
    """

    branches: tuple[Part, ...]
    schema: Schema
    top: Aggregate | Ranked | None
    shown: tuple[str, ...]
    results: Schema
    names: tuple[str, ...]
    loose: bool = False
    event_time: str | None = None

    @classmethod
    def of(cls, relation: CheckedNode, window: int = 0) -> ChangingParts:
        """The parts of the relation that a ToStream reads. Its first window has this number."""
        shown, below = relation.schema.names, relation
        while isinstance(below.node, Project) and _is_plain(below.node):
            # Over the top a plain Project gives other names and another order, nothing else.
            shown = tuple(_inner_name(below.node.columns, name) for name in shown)
            below = below.inputs[0]
        if isinstance(below.node, Aggregate | Ranked):
            given = below.inputs[0]
            loose = depends_on_others(below)
            branches = _branches(given, window)
            own = (given.schema, below.node, shown, below.schema, relation.schema.names)
            return cls(branches, *own, loose, given.event_time)
        rows = relation.schema
        return cls(_branches(relation, window), rows, None, rows.names, rows, rows.names)

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

    def sides(self) -> list[SidePart]:
        """The windows and relations of which it is made, in the order of their numbers."""
        return [side for branch in self.branches for side in branch.sides()]

    def windows(self) -> list[WindowPart]:
        """All windows of the query, in their order."""
        return [window for branch in self.branches for window in branch.windows()]

    def relations(self) -> Iterator[ChangingParts]:
        """This relation, and all those below it, which come first."""
        for side in self.sides():
            if isinstance(side, RelationPart):
                yield from side.parts.relations()
        yield self


def _branches(relation: CheckedNode, window: int) -> tuple[Part, ...]:
    base, above = _base(relation)
    if not isinstance(base.node, Union):
        return (_part(relation, 0, window, ()),)
    # Each branch has the attributes of the union, so a step over the union is one over each branch.
    found: list[Part] = []
    for number, branch in enumerate(base.inputs):
        found.append(_part(branch, number, window, above))
        window += len([*found[-1].windows()])
    return tuple(found)


def _base(relation: CheckedNode) -> tuple[CheckedNode, Steps]:
    """What is below the steps of rows, and these steps."""
    steps = []
    while isinstance(relation.node, Filter | Project):
        steps.append(relation)
        relation = relation.inputs[0]
    return relation, tuple(reversed(steps))


def _part(relation: CheckedNode, number: int, window: int, above: Steps) -> Part:
    """A part whose first side and first window have these numbers.

    `above` are further steps over it.
    """
    base, steps = _base(relation)
    schema = (above or (relation,))[-1].schema
    match base.node:
        case MovingJoin():
            left = _part(base.inputs[0], number, window, ())
            sides, windows = len([*left.sides()]), len([*left.windows()])
            right = _part(base.inputs[1], number + sides, window + windows, ())
            return JoinPart(base.node, left, right, steps + above)
        case Aggregate() | Ranked():
            return RelationPart(number, ChangingParts.of(base, window), steps + above, schema)
        case Moving():
            return WindowPart(number, window, base, steps + above, schema)
        case _:
            raise TypeError("no moving window")


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


def _is_plain(project: Project) -> bool:
    return all(isinstance(column.expression, AttributeRef) for column in project.columns)


def _inner_name(columns: Sequence[Column], name: str) -> str:
    found = next(column.expression for column in columns if column.name == name)
    if not isinstance(found, AttributeRef):
        raise TypeError("a computed column over an aggregate of a moving window")
    return found.name
