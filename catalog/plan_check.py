"""Checks each node of a plan, and computes the schema, event time, delay and state of its tuples.

All checks are made when the query is added, so that no wrong plan fails only when it runs.
"""

from __future__ import annotations

from catalog.aggregates import ALL_AGGREGATE_FUNCTIONS, COUNT_DISTINCT, aggregate_rule, keeps_values
from catalog.checked_plan import CheckedNode, StateKind
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Expression, type_of
from catalog.match_check import match_schema
from catalog.moving_check import (
    check_forms,
    moving_schema,
    pairs_schema,
    ranked_schema,
    stream_schema,
)
from catalog.plan import (
    INSTANT,
    MATCH_TIME,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Column,
    Enough,
    Filter,
    Join,
    Match,
    Moving,
    MovingJoin,
    Node,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Unnest,
    Window,
    Windowed,
)
from catalog.plan_rules import (
    MAX_WINDOW_MS,
    OWN_QUERY,
    joined_schema,
    require_comparable,
    require_condition,
    require_event_time,
)
from catalog.plan_size import sizes_of
from catalog.schema import ArrayType, Attribute, Schema, Type

MAX_NODES = 1_000
MAX_DEPTH = 200
MAX_OVERLAP = 1_000
# Each join may multiply the tuples of the others.
MAX_JOINS = 8
# So many tuples are made of one at most.
MAX_ELEMENTS = 1_000
# What the results of a window or a join may be derived from, besides tuples of sources.
_IN_A_ROW = frozenset({StateKind.NONE, StateKind.GROUPS, StateKind.PAIRS})
_EDGES = (
    Attribute(WINDOW_START, Type.TIMESTAMP, required=True),
    Attribute(WINDOW_END, Type.TIMESTAMP, required=True),
)
_Inputs = tuple[CheckedNode, ...]


def check_node(node: Node, given: _Inputs) -> CheckedNode:
    """Check a node. `given` are its checked inputs. Raises InvalidInput.

    The nodes below the inputs are not checked again.
    """
    nodes = 1 + sum(below.nodes for below in given)
    depth = 1 + max((below.depth for below in given), default=0)
    if nodes > MAX_NODES:
        raise InvalidInput(f"a query has at most {MAX_NODES} boxes")
    if depth > MAX_DEPTH:
        raise InvalidInput(f"a query has at most {MAX_DEPTH} boxes in a row")
    if not isinstance(node, Aggregate) and any(isinstance(b.node, Windowed) for b in given):
        raise InvalidInput("only an aggregate reads windows")
    check_forms(node, given)
    schema = _schema(node, given)
    sizes, total = sizes_of(
        node, tuple(below.sizes for below in given), sum(below.total for below in given)
    )
    state = _state(node, given)
    return CheckedNode(
        node=node,
        inputs=given,
        schema=schema,
        event_time=_event_time(node, given),
        late_ms=_late_ms(node, given),
        spread_ms=_spread_ms(node) + max((below.spread_ms for below in given), default=0),
        state=state,
        copies=_copies(node),
        is_changing=_is_changing(node, given),
        keeps_state=state is not StateKind.NONE or any(below.keeps_state for below in given),
        nodes=nodes,
        depth=depth,
        sizes=sizes,
        total=total,
    )


def _schema(node: Node, given: _Inputs) -> Schema:
    match node:
        case Source():
            return node.schema
        case Filter(_, condition):
            require_condition(condition, given[0].schema)
            return given[0].schema
        case Project(_, columns):
            return Schema(tuple(_column(column, given[0].schema) for column in columns))
        case Union():
            return _union(tuple(below.schema for below in given))
        case Unnest():
            return _unnested(node, given[0])
        case Windowed(_, window):
            require_event_time(given[0], "a window")
            check_window(window)
            return given[0].schema
        case Aggregate():
            return _aggregate(node, given[0])
        case Join():
            return _join(node, *given)
        case Match():
            return match_schema(node, given[0])
        case _:
            return _of_relations(node, given)


def _of_relations(node: Moving | MovingJoin | Ranked | ToStream, given: _Inputs) -> Schema:
    match node:
        case Moving():
            return moving_schema(node.window, given[0])
        case MovingJoin():
            return pairs_schema(node, *given)
        case Ranked():
            return ranked_schema(node, given[0])
        case ToStream():
            return stream_schema(node, given[0])


def _state(node: Node, given: _Inputs) -> StateKind:
    match node:
        case Aggregate() if not given[0].is_changing:
            return StateKind.GROUPS
        case Join():
            return StateKind.PAIRS
        case Moving():
            return StateKind.MOVING
        case Match():
            return StateKind.MATCHES
        case _:
            return StateKind.NONE


def _is_changing(node: Node, given: _Inputs) -> bool:
    over = not isinstance(node, ToStream) and any(below.is_changing for below in given)
    return over or isinstance(node, Moving)


def _event_time(node: Node, given: _Inputs) -> str | None:
    """The attribute of the node's tuples that holds event time, or None."""
    match node:
        case Source(relation):
            return relation.event_time
        case Project(_, columns):
            inner = given[0].event_time
            refs = (c for c in columns if isinstance(c.expression, AttributeRef))
            return next((c.name for c in refs if inner and _names(c.expression, inner)), None)
        case Union():
            names = {below.event_time for below in given}
            return names.pop() if len(names) == 1 else None
        case ToStream():
            return INSTANT
        case Match():
            return MATCH_TIME
        case Aggregate():
            return None if given[0].is_changing else WINDOW_END
        case Join(kind=kind) if kind.keeps_right:
            # A right tuple without a pair has no left one.
            return None if kind.keeps_left else given[1].event_time
        case _:
            # A pair has the event time of its left tuple.
            return given[0].event_time


def _late_ms(node: Node, given: _Inputs) -> int:
    """How far the sources' tuples may lag behind the newest one (ms)."""
    if isinstance(node, Source):
        return node.relation.lateness_ms
    return max((below.late_ms for below in given), default=0)


def _spread_ms(node: Node) -> int:
    """How far in event time the node moves the results of one tuple apart (ms).

    One right tuple can complete left tuples that are up to the join's interval apart. A match may
    wait for rows behind it.
    """
    if isinstance(node, Match):
        return node.held_ms
    return node.upper_ms - node.lower_ms if isinstance(node, Join) else 0


def _copies(node: Node) -> int:
    """The number of groups of the node that a tuple is in at once."""
    if isinstance(node, Aggregate) and isinstance(node.input, Windowed):
        window = node.input.window
        copies = 1 if isinstance(window, SessionWindow) else window.size_ms // window.slide_ms
        return copies * (1 + len(distinct_arguments(node)))
    return 1 if isinstance(node, Moving | Match) else 0


def _names(expression: Expression, name: str) -> bool:
    return isinstance(expression, AttributeRef) and expression.name == name


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


def _unnested(node: Unnest, given: CheckedNode) -> Schema:
    kind = type_of(node.array, given.schema)
    if not isinstance(kind, ArrayType):
        raise InvalidInput(f"UNNEST takes an array, and this is {kind}", node.array.position)
    if any(isinstance(each.node, Unnest) for each in given.walk()):
        # Each one may make a thousand tuples of one.
        raise InvalidInput(
            f"a query unnests one array on the way to a result; {OWN_QUERY}", node.array.position
        )
    added = [Attribute(node.name, kind.element)]
    if node.number is not None:
        added.append(Attribute(node.number, Type.BIGINT, required=not node.keeps))
    return Schema((*given.schema.attributes, *added))


def _describe(schema: Schema) -> str:
    return "(" + ", ".join(f"{a.name} {a.type}" for a in schema.attributes) + ")"


def _require_time_passes(given: _Inputs, what: str) -> None:
    """Refuse inputs behind which the engine does not know how far time has come."""
    if not {each.state for below in given for each in below.walk()} <= _IN_A_ROW:
        raise InvalidInput(
            f"{what} goes over streams, windows of time and joins, and not over a moving window or "
            f"a pattern; {OWN_QUERY}"
        )


def _aggregate(node: Aggregate, given: CheckedNode) -> Schema:
    if given.is_changing:
        edges: tuple[Attribute, ...] = ()
    else:
        _require_time_passes((given,), "a window of time")
        edges = _EDGES
    if not given.is_changing and not isinstance(given.node, Windowed):
        raise InvalidInput("an aggregate goes over windows, or its groups would never close")
    if isinstance(given.node, Windowed) and isinstance(given.node.window, SessionWindow):
        _refuse_endless(node)
    schema = given.schema
    keys = tuple(_column(key, schema) for key in node.keys)
    for key, attribute in zip(node.keys, keys, strict=True):
        require_comparable(attribute.type, "a group", key.expression.position)
    results = tuple(_aggregation(each, schema) for each in node.aggregations)
    if not results and not given.is_changing:
        raise InvalidInput("an aggregate computes at least one function, such as count(*)")
    if not keys and not results:
        raise InvalidInput("SELECT DISTINCT names results")
    if node.enough is not None:
        _check_enough(node.enough, given)
    return Schema((*edges, *keys, *results))


def _check_enough(enough: Enough, given: CheckedNode) -> None:
    """Only over one stream it is known who sent a tuple, and no tuple is there twice."""
    below = {type(each.node) for each in given.walk()}
    if given.is_changing or not below <= {Windowed, Project, Filter, Source}:
        raise InvalidInput("senders are counted in windows over one stream, without join or union")
    if not set(enough.of) <= set(given.schema.names):
        raise InvalidInput("senders are counted of an attribute that is not there")


def check_window(window: Window | SessionWindow) -> None:
    """Raise InvalidInput for a window that is empty, leaves gaps, or overlaps too much."""
    if isinstance(window, SessionWindow):
        if not 0 < window.gap_ms <= MAX_WINDOW_MS:
            raise InvalidInput("the gap of a session window is 1 ms to 400 days")
        return
    size, slide = window.size_ms, window.slide_ms
    if not 0 < slide <= size <= MAX_WINDOW_MS:
        raise InvalidInput("a window's size is 1 ms to 400 days, its slide at most its size")
    if size % slide or size // slide > MAX_OVERLAP:
        raise InvalidInput(
            f"a window's size is a multiple of its slide, at most {MAX_OVERLAP} times as long"
        )
    if not 0 <= window.offset_ms < slide:
        raise InvalidInput("a window's offset is from 0 to below its slide")


def distinct_arguments(node: Aggregate) -> tuple[Expression, ...]:
    """What the node keeps the different values of, each once."""
    arguments = (a.argument for a in node.aggregations if keeps_values(a.function))
    return tuple(dict.fromkeys(each for each in arguments if each is not None))


def _refuse_endless(node: Aggregate) -> None:
    """A session may go on for ever. All else that is computed over it has a bounded size."""
    counted = distinct_arguments(node)
    if counted:
        raise InvalidInput(
            "COUNT(DISTINCT ...), COLLECT_SET or TOPKDISTINCT over a session window would keep all "
            "values of a session that never ends: use TUMBLE or HOP",
            counted[0].position,
        )


def _aggregation(aggregation: Aggregation, schema: Schema) -> Attribute:
    rule = aggregate_rule(aggregation.function)
    place = aggregation.argument.position if aggregation.argument else None
    if rule is None:
        known = ", ".join(ALL_AGGREGATE_FUNCTIONS)
        raise InvalidInput(f"unknown aggregate {aggregation.function!r}; there are: {known}", place)
    if aggregation.argument is None:
        if aggregation.function != "count":
            raise InvalidInput(f"{aggregation.function} needs an argument", place)
        return Attribute(aggregation.name, Type.BIGINT, required=True)
    argument = type_of(aggregation.argument, schema)
    result = rule(argument)
    if result is None:
        raise InvalidInput(f"{aggregation.function} does not take a {argument}", place)
    counts = aggregation.function in {"count", COUNT_DISTINCT}
    return Attribute(aggregation.name, result, required=counts)


def _join(node: Join, *given: CheckedNode) -> Schema:
    _require_time_passes(given, "a join by time")
    joins = [each for below in given for each in below.walk() if each.state is StateKind.PAIRS]
    if len(joins) >= MAX_JOINS:
        raise InvalidInput(f"a query has at most {MAX_JOINS} joins in a row; {OWN_QUERY}")
    for below in given:
        require_event_time(below, "a join")
    if not -MAX_WINDOW_MS <= node.lower_ms <= node.upper_ms <= MAX_WINDOW_MS:
        raise InvalidInput("a join's interval goes from an earlier to a later time, 400 days each")
    left, right = (below.schema for below in given)
    return joined_schema(left, right, node.equal, node.condition, node.kind)
