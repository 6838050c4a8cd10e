"""Building a plan from its sources up, one checked node at a time.

A front end may feed one stream into several boxes, or name one common table expression twice; as a
plan is a tree, each use is a copy, and a few lines of text could stand for a plan larger than any
memory. So sizes are counted while building, before anything walks the tree: of nodes, and of what
stands in them.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import InvalidInput, Position
from catalog.expression import Call, Expression, Literal
from catalog.plan import Aggregate, Filter, Join, Plan, Project, Source, Union
from catalog.plan_check import MAX_NODES, node_schema
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
    """A plan, the schema of its tuples, and how large the tree is.

    `parts` are its nodes, their expressions' attributes, constants and calls, and the attributes of
    its sources: what is stored of it.
    """

    plan: Plan
    schema: Schema
    nodes: int
    depth: int
    parts: int


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
    parts = _own_parts(plan) + sum(below.parts for below in inputs)
    if parts > MAX_PARTS:
        raise InvalidInput(
            f"the query has more than {MAX_PARTS} parts (attributes, constants, calls), a shared "
            "one counted once per use; make a shared part a query of its own and read its output",
            position,
        )
    with placed(position):
        schema = node_schema(plan, tuple(below.schema for below in inputs))
    # Twice, because a join has the attributes of both its sides.
    if len(schema.attributes) > 2 * MAX_ATTRIBUTES:
        raise InvalidInput(f"a box gives at most {2 * MAX_ATTRIBUTES} attributes", position)
    return Built(plan, schema, nodes, depth, parts)


def _own_parts(plan: Plan) -> int:
    """The parts of the node itself; where they are too many, at least one more than there may be.

    What a BETWEEN or IN repeats is one value here, but many when it is stored.
    """
    count = 1 + (len(plan.relation.schema.attributes) if isinstance(plan, Source) else 0)
    rest = _expressions(plan)
    while rest and count <= MAX_PARTS:
        part = rest.pop()
        count += 1
        if isinstance(part, Call):
            rest += part.arguments
        elif isinstance(part, Literal) and isinstance(part.value, str):
            count += len(part.value) // _LONG
    return count


def _expressions(plan: Plan) -> list[Expression]:
    match plan:
        case Source() | Union():
            return []
        case Filter(_, condition):
            return [condition]
        case Project(_, columns):
            return [column.expression for column in columns]
        case Aggregate(_, _, keys, aggregations):
            arguments = (each.argument for each in aggregations)
            return [*(key.expression for key in keys), *(a for a in arguments if a is not None)]
        case Join(_, _, equal, condition=condition):
            return [*(ref for pair in equal for ref in pair), *([condition] if condition else [])]
