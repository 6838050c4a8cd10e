"""Build a plan from its sources up, one checked node at a time.

Each node is analysed when it is made (`catalog.plan_check.check_node`), and never again.

A language may feed one stream into several boxes, or name one common table expression twice. A plan
is a tree, so each use is a copy. A few lines of text could thus give a plan that is larger than any
memory. So the nodes, and the parts in them, are counted while the plan is built, before anything
walks the tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput, Position
from catalog.expression import Call, Expression, Literal
from catalog.plan import (
    Aggregate,
    Emission,
    Filter,
    Join,
    Match,
    Moving,
    MovingJoin,
    Node,
    Project,
    Ranked,
    Source,
    ToStream,
    Union,
    Unnest,
    Windowed,
)
from catalog.plan_check import MAX_NODES, check_node
from catalog.schema import MAX_ATTRIBUTES, Schema
from secadmin.languages.text import placed

# The code that walks, stores or compiles a plan is recursive. Python allows 1,000 levels.
MAX_DEPTH = 140
# As JSON, a part has 100 to 200 bytes. While a plan is stored, no other call can write.
MAX_PARTS = 50_000
# Each piece of a text with this many characters counts as one more part.
_LONG = 100


@dataclass(frozen=True, slots=True)
class Built:
    """A checked node, and its size when it is stored.

    `parts` is the number of nodes in the tree, of attributes, constants and calls in their
    expressions, and of attributes of the sources. `emissions` has the emission that each aggregate
    asks for, in a language in which each aggregate has its own.
    """

    checked: CheckedNode
    parts: int
    emissions: frozenset[Emission] = frozenset()

    @property
    def node(self) -> Node:
        """The node."""
        return self.checked.node

    @property
    def schema(self) -> Schema:
        """The attributes of its tuples."""
        return self.checked.schema

    @property
    def event_time(self) -> str | None:
        """The attribute that carries event time, or None."""
        return self.checked.event_time


def build(
    node: Node,
    inputs: tuple[Built, ...],
    position: Position | None,
    emission: Emission | None = None,
) -> Built:
    """Check the node over these inputs, which the node already holds.

    `emission` is the emission that the node itself asks for. Raises InvalidInput. If the fault is
    in the node itself, the error has `position`.
    """
    nodes = 1 + sum(below.checked.nodes for below in inputs)
    depth = 1 + max((below.checked.depth for below in inputs), default=0)
    if nodes > MAX_NODES:
        raise InvalidInput(
            f"the query has more than {MAX_NODES} boxes, a stream that is read twice counted "
            "twice; make a shared part a query of its own and read its output",
            position,
        )
    if depth > MAX_DEPTH:
        raise InvalidInput(
            f"more than {MAX_DEPTH} boxes are in a row; split the query in two", position
        )
    parts = _own_parts(node) + sum(below.parts for below in inputs)
    if parts > MAX_PARTS:
        raise InvalidInput(
            f"the query has more than {MAX_PARTS} parts (attributes, constants, calls), a shared "
            "one counted once per use; make a shared part a query of its own and read its output",
            position,
        )
    with placed(position):
        checked = check_node(node, tuple(below.checked for below in inputs))
    # Twice, because a join has the attributes of both its sides.
    if len(checked.schema.attributes) > 2 * MAX_ATTRIBUTES:
        raise InvalidInput(f"a box gives at most {2 * MAX_ATTRIBUTES} attributes", position)
    own = frozenset() if emission is None else frozenset({emission})
    return Built(checked, parts, own.union(*(below.emissions for below in inputs)))


def _own_parts(node: Node) -> int:
    """Count the parts of the node itself. Counting stops as soon as there are too many.

    A BETWEEN or IN repeats its left side. It is one value here, but many when it is stored.
    """
    count = 1 + (len(node.schema.attributes) if isinstance(node, Source) else 0)
    rest = _expressions(node)
    while rest and count <= MAX_PARTS:
        part = rest.pop()
        count += 1
        if isinstance(part, Call):
            rest += part.arguments
        elif isinstance(part, Literal) and isinstance(part.value, str):
            count += len(part.value) // _LONG
    return count


def _expressions(node: Node) -> list[Expression]:
    match node:
        case Source() | Union() | Windowed() | ToStream():
            return []
        case Moving(_, window):
            return list(window.partition)
        case Match(_, partition, measures):
            read = (each.argument for each in (*measures, *node.readings))
            conditions = (each.condition for each in node.definitions)
            return [*partition, *conditions, *(each for each in read if each is not None)]
        case Ranked(_, partition, order, _, _, neighbours):
            others = (*(key.attribute for key in order), *(each.attribute for each in neighbours))
            return [*partition, *others]
        case Filter(_, condition):
            return [condition]
        case Unnest(_, array):
            return [array]
        case Project(_, columns):
            return [column.expression for column in columns]
        case Aggregate(_, keys, aggregations):
            arguments = (each.argument for each in aggregations)
            return [*(key.expression for key in keys), *(a for a in arguments if a is not None)]
        case Join(_, _, equal, condition=condition) | MovingJoin(_, _, equal, condition=condition):
            return [*(ref for pair in equal for ref in pair), *([condition] if condition else [])]
