"""Checks the nodes of moving windows: what they go over, and what goes over them."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput
from catalog.expression import attributes_of, type_of
from catalog.moments import moments
from catalog.pair_expressions import check_rows
from catalog.plan import (
    INSTANT,
    Aggregate,
    Change,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Project,
    Ranked,
    Source,
    ToStream,
    Union,
    Window,
    Windowed,
    inputs,
)
from catalog.plan_rules import (
    MAX_ROWS,
    MAX_WINDOW_MS,
    OWN_QUERY,
    joined_schema,
    require_comparable,
    require_event_time,
    require_ordered,
)
from catalog.relation import RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.upserts import require_read_by_key, upsert_schema

# A row that comes changes so many others.
MAX_OFFSET = 100
# Each window of a join may multiply the rows of the others.
MAX_WINDOWS = 8
# Each of them has its rows in memory.
MAX_RELATIONS = 8
RELATION = (
    "a moving window gives a relation, which is no stream: say with ISTREAM, DSTREAM or RSTREAM "
    "what of its changes is to be sent"
)
NOW = MovingWindow(range_ms=0)
_Inputs = tuple[CheckedNode, ...]


def gives_windows(each: CheckedNode) -> bool:
    """Whether a node gives results of TUMBLE or HOP: all of a window, or none of it."""
    match each.node:
        case Filter(_, condition):
            # A condition on a single result would leave out its labels, too.
            edges = moments(each.inputs[0])
            read = attributes_of(condition)
            return all(ref.name in edges for ref in read) and gives_windows(each.inputs[0])
        case Aggregate(Windowed(_, window)):
            return isinstance(window, Window)
        case _:
            return False


def is_of_windows(relation: CheckedNode) -> bool:
    """Whether a relation holds, at each instant, the results of the windows that end then."""
    return any(
        isinstance(each.node, Moving) and each.inputs[0].keeps_state for each in relation.walk()
    )


def check_forms(node: Node, given: _Inputs) -> None:
    """Streams and relations are two things, and only ToStream makes a stream of a relation.

    Raises InvalidInput.
    """
    for below in given:
        require_read_by_key(node, below.node)
    changing = [below.is_changing for below in given]
    if isinstance(node, MovingJoin) and changing == [False, True]:
        raise InvalidInput(f"the left side of this join is a stream; {_BOTH}")
    if isinstance(node, MovingJoin) and changing == [True, False]:
        raise InvalidInput(f"the right side of this join is a stream; {_BOTH}")
    if not any(changing):
        if isinstance(node, ToStream | MovingJoin | Ranked):
            what = node.change.upper() if isinstance(node, ToStream) else _WORDS[type(node)]
            raise InvalidInput(
                f"{what} goes over a moving window, such as [ROWS 100]; over a stream, leave it out"
            )
        return
    if isinstance(node, Union) and not all(changing):
        raise InvalidInput(f"one side of this UNION is a stream, and one is not; {_BOTH}")
    if not isinstance(node, Filter | Project | Union | Aggregate | MovingJoin | Ranked | ToStream):
        raise InvalidInput(RELATION)
    _check_order(node, given)


def _check_order(node: Node, given: _Inputs) -> None:
    """Refuse an order of operators over relations that the engine does not have."""
    below = [each.node for one in given for each in one.walk() if each.is_changing]
    rows = [each for one in given for each in _rows_of(one.node)]
    united = any(isinstance(each, Union) for each in rows)
    if united and isinstance(node, Union | MovingJoin):
        raise InvalidInput(
            "a UNION of moving windows is joined with nothing, and is in no other UNION; add it as "
            "a query of its own"
        )
    if isinstance(node, Union) and any(isinstance(each, MovingJoin) for each in rows):
        raise InvalidInput(
            "a UNION goes over single moving windows or groups, and not over joins of them; "
            "add each join as a query of its own"
        )
    if isinstance(node, Union | MovingJoin) and any(map(is_of_windows, given)):
        raise InvalidInput(
            "what OVER gives of windows of time is joined and united with nothing; " + OWN_QUERY
        )
    if sum(isinstance(each, Moving) for each in below) > MAX_WINDOWS:
        raise InvalidInput(f"a query has at most {MAX_WINDOWS} moving windows")
    if sum(isinstance(each, Aggregate | Ranked) for each in below) > MAX_RELATIONS:
        raise InvalidInput(
            f"a query has at most {MAX_RELATIONS} groups, orders and DISTINCT over moving windows "
            "below each other; " + OWN_QUERY
        )


def _rows_of(relation: Node) -> Iterator[Node]:
    """The nodes that make the rows of a relation: down to windows, groups and rows in an order."""
    yield relation
    if not isinstance(relation, Moving | Aggregate | Ranked):
        for below in inputs(relation):
            yield from _rows_of(below)


_WORDS = {MovingJoin: "this join", Ranked: "an order with a limit, or with neighbours,"}
_BOTH = "give it a moving window too, such as [NOW], [RANGE 5 MINUTES] or [ROWS 100]"


def moving_schema(window: MovingWindow, given: CheckedNode) -> Schema:
    """The attributes of a moving window's tuples. Raises InvalidInput for a wrong window."""
    require_event_time(given, "a moving window")
    if given.keeps_state and not (window == NOW and gives_windows(given)):
        raise InvalidInput("a moving window goes over streams; " + OWN_QUERY)
    for key in window.partition:
        require_comparable(type_of(key, given.schema), "PARTITION BY", key.position)
    _check_lengths(window)
    if window.of_all:
        _check_of_all(window, given.node)
    return given.schema


def _check_lengths(window: MovingWindow) -> None:
    if window.range_ms is not None and window.rows is not None:
        raise InvalidInput("a moving window has a range or a number of rows")
    if window.rows is not None and not 1 <= window.rows <= MAX_ROWS:
        raise InvalidInput(f"a moving window has 1 to {MAX_ROWS} rows")
    if window.range_ms is not None and not 0 <= window.range_ms <= MAX_WINDOW_MS:
        raise InvalidInput("a moving window's range is 0 (NOW) to 400 days")
    if window.slide_ms is not None and not (
        window.range_ms and 1 <= window.slide_ms <= MAX_WINDOW_MS
    ):
        raise InvalidInput("SLIDE goes with a RANGE, and is 1 ms to 400 days")
    if window.slide_rows is not None and not (
        window.rows is not None and 1 <= window.slide_rows <= window.rows and window.rows > 1
    ):
        raise InvalidInput(
            "SLIDE with a number goes with ROWS of at least 2, and is 1 to that number of rows"
        )
    if window.rows is None and window.partition:
        raise InvalidInput("PARTITION BY goes with ROWS; other windows need no partitions")


def _check_of_all(window: MovingWindow, below: Node) -> None:
    """A window with one size for all tuples reveals how many hidden ones come, and nothing else.

    So neither a condition nor a partition chooses which of them are counted.
    """
    if window.rows is None:
        raise InvalidInput("OF ALL goes with ROWS: other windows have no size that tuples share")
    if window.partition:
        raise InvalidInput(
            "OF ALL goes without PARTITION BY: a tuple that a subscriber may not see would reveal "
            "its values by the partition in which it takes a place"
        )
    if not isinstance(below, Source) or below.relation.kind is not RelationKind.STREAM:
        raise InvalidInput(
            "a window OF ALL goes over a stream itself, with nothing between them, neither a query "
            "nor a policy: a condition there would reveal the values of tuples that a subscriber "
            "may not see"
        )


def pairs_schema(node: MovingJoin, left: CheckedNode, right: CheckedNode) -> Schema:
    """The attributes of the rows of a join of two relations. Raises InvalidInput."""
    return joined_schema(left.schema, right.schema, node.equal, node.condition, node.kind)


def ranked_schema(node: Ranked, given: CheckedNode) -> Schema:
    """The attributes of ordered rows. Raises InvalidInput."""
    if not node.order:
        raise InvalidInput("rows in an order need ORDER BY")
    if node.limit is not None and not 1 <= node.limit <= MAX_ROWS:
        raise InvalidInput(f"a query keeps the first 1 to {MAX_ROWS} rows of an order")
    for below in _rows_of(given.node):
        if isinstance(below, MovingJoin) and below.kind is JoinKind.SEMI:
            raise InvalidInput(
                "rows of a semi join have no places in an order, because each is there once for "
                "each label of its witnesses; order them in a query over this one's output"
            )
        if isinstance(below, Aggregate) and not below.aggregations:
            raise InvalidInput(
                "rows of DISTINCT have no places in an order, because each is there once for each "
                "label; write GROUP BY with an aggregate, or order them in a query over this one's "
                "output"
            )
    for ref in node.partition:
        require_comparable(type_of(ref, given.schema), "PARTITION BY", ref.position)
    for ref in (key.attribute for key in node.order):
        require_ordered(type_of(ref, given.schema), "ORDER BY", ref.position)
    added = [Attribute(node.number, Type.BIGINT, required=True)] if node.number else []
    for each in node.neighbours:
        if not 1 <= abs(each.offset) <= MAX_OFFSET:
            raise InvalidInput(
                f"LAG and LEAD go 1 to {MAX_OFFSET} rows back or on", each.attribute.position
            )
        added.append(Attribute(each.name, type_of(each.attribute, given.schema)))
    return Schema((*given.schema.attributes, *added))


def _check_windows(node: ToStream, given: CheckedNode) -> None:
    if not any(isinstance(each.node, Ranked) for each in given.walk()):
        raise InvalidInput("a moving window goes over streams; " + OWN_QUERY)
    if node.change is not Change.RSTREAM:
        # What a tuple changes in one group shows in the places of the others. Only a row of RSTREAM
        # carries the labels of all of them.
        raise InvalidInput(
            "the order of a window's results is sent whole when the window closes (RSTREAM): leave "
            f"{node.change.upper()} out"
        )


def stream_schema(node: ToStream, given: CheckedNode) -> Schema:
    """The attributes of the stream of a relation. Raises InvalidInput."""
    if INSTANT in given.schema.names:
        raise InvalidInput(
            f"{INSTANT!r} is the name of the time at which a row comes or goes; rename "
            "your attribute with AS"
        )
    if is_of_windows(given):
        _check_windows(node, given)
    check_rows(given)
    instant = Attribute(INSTANT, Type.TIMESTAMP, required=True)
    shown = given.schema
    if node.change is Change.UPSERT:
        shown = upsert_schema(node, shown)
    return Schema((instant, *shown.attributes))
