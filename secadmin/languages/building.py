"""Building a plan from its sources up, one checked node at a time.

A front end may feed one stream into several boxes, or name one common table expression twice; as a
plan is a tree, each use is a copy, and a few lines of text could stand for a plan larger than any
memory. So sizes are counted while building, before anything walks the tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import InvalidInput, Position
from catalog.plan import Plan
from catalog.plan_check import MAX_NODES, node_schema
from catalog.schema import MAX_ATTRIBUTES, Schema
from secadmin.languages.text import placed

# Whatever walks, stores or compiles a plan does so recursively, under Python's limit of 1,000.
MAX_DEPTH = 140


@dataclass(frozen=True, slots=True)
class Built:
    """A plan, the schema of its tuples, and how large the tree is."""

    plan: Plan
    schema: Schema
    nodes: int
    depth: int


def build(plan: Plan, inputs: tuple[Built, ...], position: Position | None) -> Built:
    """The node `plan` over these inputs (which it holds already), checked.

    Raises InvalidInput; where the fault is the node's own, at `position`.
    """
    nodes = 1 + sum(below.nodes for below in inputs)
    depth = 1 + max((below.depth for below in inputs), default=0)
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
    with placed(position):
        schema = node_schema(plan, tuple(below.schema for below in inputs))
    # Twice, because a join has the attributes of both its sides.
    if len(schema.attributes) > 2 * MAX_ATTRIBUTES:
        raise InvalidInput(f"a box gives at most {2 * MAX_ATTRIBUTES} attributes", position)
    return Built(plan, schema, nodes, depth)
