"""Plans that one Spark query can compute together, over one scan of the relation that they read.

A plan of filters and projections over one source is a condition and a list of expressions over the
tuple. So one scan of the relation is enough for many of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.analysis import analyse
from catalog.changing_parts import through_steps
from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef, Call, Expression
from catalog.plan import Filter, Plan, Project, Source
from catalog.plan_size import Sizes, sizes_of
from catalog.schema import Schema
from secfilter.expressions import MATCHES

MOST_PARTS = 200
"""How many attributes, constants and calls such a plan has at most, written over its source."""


@dataclass(frozen=True, slots=True)
class FusedPlan:
    """A plan over one source: its conditions, and the expression of each attribute of `schema`.

    `parts` is the size of all of them (`catalog.plan_size`).
    """

    source: Source
    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]
    schema: Schema
    parts: int


def fused_plan(plan: Plan) -> FusedPlan | None:
    """The plan as expressions over its source, or None if it must run alone.

    It runs alone if it keeps state, reads several sources, is large, or searches texts by a
    pattern: that may take as many steps as text and pattern are long together, and all queries that
    run with it would wait for it.
    """
    checked = analyse(plan)
    steps, below = _chain(checked.root)
    if not isinstance(below.node, Source):
        return None
    parts = _parts(steps, below)
    if parts > MOST_PARTS or any(map(_searches, _written(steps))):
        return None
    own = {name: AttributeRef(name) for name in below.schema.names}
    conditions, values = through_steps(steps, own)
    results = tuple(values[name] for name in checked.schema.names)
    return FusedPlan(below.node, conditions, results, checked.schema, parts)


def _chain(root: CheckedNode) -> tuple[list[CheckedNode], CheckedNode]:
    """The filters and projections at the top, lowest first, and what is under them."""
    steps: list[CheckedNode] = []
    while isinstance(root.node, Filter | Project):
        steps.append(root)
        (root,) = root.inputs
    return steps[::-1], root


def _parts(steps: list[CheckedNode], source: CheckedNode) -> int:
    sizes: Sizes
    sizes, total = sizes_of(source.node, (), 0)
    for step in steps:
        sizes, total = sizes_of(step.node, (sizes,), total)
    return total + len(sizes)


def _written(steps: list[CheckedNode]) -> Iterator[Expression]:
    for step in steps:
        match step.node:
            case Filter(_, condition):
                yield condition
            case Project(_, columns):
                yield from (column.expression for column in columns)


def _searches(expression: Expression) -> bool:
    """Whether a function of it looks for a pattern."""
    if not isinstance(expression, Call):
        return False
    return expression.function in MATCHES or any(map(_searches, expression.arguments))
