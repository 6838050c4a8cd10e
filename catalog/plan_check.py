"""What flows along a plan's edges: schemas, event time, reach; and what a plan may not be.

All of it is decided when the query is added, so that no query fails for its shape at run time.
"""

from __future__ import annotations

from itertools import islice

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Expression, type_of
from catalog.functions import AGGREGATE_FUNCTIONS
from catalog.label import Label, combine
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Join,
    Plan,
    Project,
    Source,
    Union,
    Window,
    gives_updates,
    inputs,
    is_stateful,
    sources,
    walk,
)
from catalog.plan_size import check_size
from catalog.relation import DeclaredAggregate, RelationKind
from catalog.schema import Attribute, Schema, Type, check_definition

MAX_NODES = 1_000
MAX_DEPTH = 200
MAX_WINDOW_MS = 400 * 24 * 3_600_000
MAX_OVERLAP = 1_000


def check_plan(plan: Plan) -> Schema:
    """Check a whole query and return the schema of its output. Raises InvalidInput."""
    # A diagram in which boxes feed several others can unfold to far more than can be counted.
    if sum(1 for _ in islice(walk(plan), MAX_NODES + 1)) > MAX_NODES:
        raise InvalidInput(f"a query has at most {MAX_NODES} boxes")
    _refuse_deep(plan)
    _refuse_mixed_updates(plan)
    schema = check_definition(output_schema(plan))
    check_size(plan)
    return schema


def _refuse_deep(plan: Plan) -> None:
    level: tuple[Plan, ...] = (plan,)
    for _ in range(MAX_DEPTH):
        level = tuple(below for node in level for below in inputs(node))
        if not level:
            return
    raise InvalidInput(f"a query has at most {MAX_DEPTH} boxes in a row")


def _refuse_mixed_updates(plan: Plan) -> None:
    """With EMIT UPDATES there is nothing but windows that give them, straight over streams.

    The engine sends a query's results in one way; and what another query's output repeats after a
    crash it only leaves out of what is sent once.
    """
    if not gives_updates(plan):
        return
    for node in walk(plan):
        match node:
            case Join() | Aggregate(updates=False):
                raise InvalidInput(
                    "EMIT UPDATES goes for all windows of a query, and for no join; "
                    "add the other part as a query of its own"
                )
            case Source(relation) if relation.kind is not RelationKind.STREAM:
                raise InvalidInput(
                    f"EMIT UPDATES reads streams, and {relation.name} is an output; "
                    "leave it out, or read the streams themselves"
                )


def output_schema(plan: Plan) -> Schema:
    """The schema of the tuples that a node gives. Raises InvalidInput where the node is wrong."""
    return node_schema(plan, tuple(output_schema(node) for node in inputs(plan)))


def node_schema(plan: Plan, given: tuple[Schema, ...]) -> Schema:
    """As `output_schema`, where the inputs' schemas are known: builders check each node once."""
    match plan:
        case Source(relation):
            return relation.schema
        case Filter(_, condition):
            _require_condition(condition, given[0])
            return given[0]
        case Project(_, columns):
            return Schema(tuple(_column(column, given[0]) for column in columns))
        case Union():
            return _union(given)
        case Aggregate():
            return _aggregate(plan, given[0])
        case Join():
            return _join(plan, *given)


def event_time(plan: Plan) -> str | None:
    """The attribute of the node's tuples that carries event time, or None."""
    match plan:
        case Source(relation):
            return relation.event_time
        case Filter(node):
            return event_time(node)
        case Project(node, columns):
            inner = event_time(node)
            refs = (c for c in columns if isinstance(c.expression, AttributeRef))
            return next((c.name for c in refs if inner and _names(c.expression, inner)), None)
        case Union(nodes):
            names = {event_time(node) for node in nodes}
            return names.pop() if len(names) == 1 else None
        case Aggregate():
            return WINDOW_END
        case Join(left):
            return event_time(left)


def reach(plan: Plan) -> Label:
    """Every category that a result can carry."""
    own = (node.relation.reach for node in walk(plan) if isinstance(node, Source))
    lowered = (d.aggregated for node in walk(plan) if (d := lowers(node)) is not None)
    return combine(own) | Label.of(*lowered)


def is_public(plan: Plan) -> bool:
    """Whether a result can carry the empty label."""
    return any(node.relation.public for node in walk(plan) if isinstance(node, Source))


def lowers(plan: Plan) -> DeclaredAggregate | None:
    """The declared aggregate that this node is, or None: then its results keep the source category.

    It is one only straight over the source, over the declared keys and window, with declared
    functions of plain attributes (DESIGN, the one rule). With updates it is none: two that follow
    each other may differ by one tuple, and tell it.
    """
    if not isinstance(plan, Aggregate) or not isinstance(plan.input, Source) or plan.updates:
        return None
    declared = plan.input.relation.declared
    if declared is None:
        return None
    fits = (
        plan.window == Window(declared.window_ms, declared.window_ms)
        and sorted(_plain_names(plan.keys)) == sorted(declared.keys)
        and len(plan.keys) == len(declared.keys)
        and all(_is_declared(a, declared.functions) for a in plan.aggregations)
    )
    return declared if fits else None


def lowered_streams(plan: Plan) -> frozenset[int]:
    """The ids of the streams whose declared aggregate is in the plan (`lowers`)."""
    return frozenset(
        relation.object_id
        for node in walk(plan)
        if lowers(node) is not None
        for relation in sources(node)
    )


def _names(expression: Expression, name: str) -> bool:
    return isinstance(expression, AttributeRef) and expression.name == name


def _plain_names(columns: tuple[Column, ...]) -> list[str]:
    return [c.expression.name for c in columns if isinstance(c.expression, AttributeRef)]


def _is_declared(aggregation: Aggregation, functions: tuple[str, ...]) -> bool:
    plain = aggregation.argument is None or isinstance(aggregation.argument, AttributeRef)
    return plain and aggregation.function in functions


def _require_condition(condition: Expression, schema: Schema) -> None:
    if type_of(condition, schema) is not Type.BOOLEAN:
        raise InvalidInput(
            "a condition is true or false; compare with =, < or the like", condition.position
        )


def _column(column: Column, schema: Schema) -> Attribute:
    inner = type_of(column.expression, schema)
    source = (
        schema.get(column.expression.name) if isinstance(column.expression, AttributeRef) else None
    )
    return Attribute(column.name, inner, required=source is not None and source.required)


def _union(schemas: tuple[Schema, ...]) -> Schema:
    if len(schemas) < 2:
        raise InvalidInput("a union has at least two inputs")
    first = schemas[0]
    for other in schemas[1:]:
        if [(a.name, a.type) for a in first.attributes] != [
            (a.name, a.type) for a in other.attributes
        ]:
            raise InvalidInput(
                f"the inputs of a union differ: {_describe(first)} and {_describe(other)}"
            )
    required = [all(s.attributes[i].required for s in schemas) for i in range(len(first.names))]
    return Schema(
        tuple(
            Attribute(a.name, a.type, needed)
            for a, needed in zip(first.attributes, required, strict=True)
        )
    )


def _describe(schema: Schema) -> str:
    return "(" + ", ".join(f"{a.name} {a.type}" for a in schema.attributes) + ")"


def _refuse_nested_state(node: Aggregate | Join) -> None:
    if any(is_stateful(below) for below in inputs(node)):
        raise InvalidInput(
            "a query has one window or join between a source and its output; "
            "add this part as a query of its own over the other one's output"
        )


def _require_event_time(node: Plan, what: str) -> str:
    name = event_time(node)
    if name is None:
        raise InvalidInput(
            f"{what} goes by event time, but its input has none: "
            "keep the stream's event-time attribute under one name"
        )
    return name


def _aggregate(node: Aggregate, schema: Schema) -> Schema:
    _refuse_nested_state(node)
    _require_event_time(node.input, "a window")
    check_window(node.window)
    keys = tuple(_column(key, schema) for key in node.keys)
    results = tuple(_aggregation(aggregation, schema) for aggregation in node.aggregations)
    if not results:
        raise InvalidInput("an aggregate computes at least one function, such as count(*)")
    edges = (
        Attribute(WINDOW_START, Type.TIMESTAMP, required=True),
        Attribute(WINDOW_END, Type.TIMESTAMP, required=True),
    )
    return Schema((*edges, *keys, *results))


def check_window(window: Window) -> None:
    """Raise InvalidInput for a window that is empty, leaves gaps, or overlaps too much."""
    size, slide = window.size_ms, window.slide_ms
    if not 0 < slide <= size <= MAX_WINDOW_MS:
        raise InvalidInput("a window's size is 1 ms to 400 days, its slide at most its size")
    if size % slide or size // slide > MAX_OVERLAP:
        raise InvalidInput(
            f"a window's size is a multiple of its slide, at most {MAX_OVERLAP} times as long"
        )


def _aggregation(aggregation: Aggregation, schema: Schema) -> Attribute:
    rule = AGGREGATE_FUNCTIONS.get(aggregation.function)
    place = aggregation.argument.position if aggregation.argument else None
    if rule is None:
        known = ", ".join(AGGREGATE_FUNCTIONS)
        raise InvalidInput(f"unknown aggregate {aggregation.function!r}; there are: {known}", place)
    if aggregation.argument is None:
        if aggregation.function != "count":
            raise InvalidInput(f"{aggregation.function} needs an argument", place)
        return Attribute(aggregation.name, Type.BIGINT, required=True)
    argument = type_of(aggregation.argument, schema)
    result = rule(argument)
    if result is None:
        raise InvalidInput(f"{aggregation.function} does not take a {argument}", place)
    return Attribute(aggregation.name, result, required=aggregation.function == "count")


def _join(node: Join, left: Schema, right: Schema) -> Schema:
    _refuse_nested_state(node)
    _require_event_time(node.left, "a join")
    _require_event_time(node.right, "a join")
    if not node.equal:
        raise InvalidInput("a join compares at least one attribute of both sides with =")
    for mine, other in node.equal:
        mine_type, other_type = type_of(mine, left), type_of(other, right)
        if mine_type is not other_type:
            raise InvalidInput(
                f"{mine.name} is a {mine_type}, {other.name} a {other_type}", mine.position
            )
    if not -MAX_WINDOW_MS <= node.lower_ms <= node.upper_ms <= MAX_WINDOW_MS:
        raise InvalidInput("a join's interval goes from an earlier to a later time, 400 days each")
    both = Schema((*left.attributes, *right.attributes))
    if node.condition is not None:
        _require_condition(node.condition, both)
    return both
