"""Building a plan from its sources up, one checked node at a time.

Each node is analysed when it is made (`catalog.plan_check.check_node`), and never again.

A front end may feed one stream into several boxes, or name one common table expression twice; as a
plan is a tree, each use is a copy, and a few lines of text could stand for a plan larger than any
memory. So sizes are counted while building, before anything walks the tree: of nodes, and of what
stands in them.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput, Position
from catalog.expression import Call, Expression, Literal
from catalog.plan import Aggregate, Emission, Filter, Join, Node, Project, Source, Union, Windowed
from catalog.plan_check import MAX_NODES, check_node
from catalog.schema import MAX_ATTRIBUTES, Schema
from secadmin.languages.text import placed

# Whatever walks, stores or compiles a plan does so recursively, under Python's limit of 1,000.
MAX_DEPTH = 140
# As JSON, a part has 100 to 200 bytes; a plan is written down while no other call can write.
MAX_PARTS = 50_000
# A text of this length is a part more.
_LONG = 100


@dataclass(frozen=True, slots=True)
class Built:
    """A checked node, and how large it is when it is stored.

    `parts` are the tree's nodes, their expressions' attributes, constants and calls, and the
    attributes of the sources. `emissions` are what its aggregates ask for, in a language in which
    each says it for itself.
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
    """The node over these inputs (which it holds already), checked.

    `emission` is what the node itself asks for. Raises InvalidInput; where the fault is the node's
    own, at `position`.
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
            f"more than {MAX_DEPTH} boxes stand in a row; split the query in two", position
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
    """The parts of the node itself; where they are too many, at least one more than there may be.

    What a BETWEEN or IN repeats is one value here, but many when it is stored.
    """
    count = 1 + (len(node.relation.schema.attributes) if isinstance(node, Source) else 0)
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
        case Source() | Union() | Windowed():
            return []
        case Filter(_, condition):
            return [condition]
        case Project(_, columns):
            return [column.expression for column in columns]
        case Aggregate(_, keys, aggregations):
            arguments = (each.argument for each in aggregations)
            return [*(key.expression for key in keys), *(a for a in arguments if a is not None)]
        case Join(_, _, equal, condition=condition):
            return [*(ref for pair in equal for ref in pair), *([condition] if condition else [])]
