"""Checks the nodes of moving windows: what they go over, and what goes over them."""

from __future__ import annotations

from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, type_of
from catalog.pair_expressions import check_pairs
from catalog.plan import (
    INSTANT,
    Aggregate,
    Filter,
    MovingJoin,
    MovingWindow,
    Node,
    Project,
    Source,
    ToStream,
)
from catalog.plan_rules import MAX_WINDOW_MS, OWN_QUERY, joined_schema, require_event_time
from catalog.relation import RelationKind
from catalog.schema import Attribute, Schema, Type

# Each new tuple costs as many steps as the window has rows.
MAX_ROWS = 10_000
RELATION = (
    "a moving window gives a relation, which is no stream: say with ISTREAM, DSTREAM or RSTREAM "
    "what of its changes is to be sent"
)
_Inputs = tuple[CheckedNode, ...]


def check_forms(node: Node, given: _Inputs) -> None:
    """Streams and relations are two things, and only ToStream makes a stream of a relation.

    Raises InvalidInput.
    """
    changing = [below.is_changing for below in given]
    if isinstance(node, MovingJoin) and changing == [False, True]:
        raise InvalidInput(f"the left side of this join is a stream; {_BOTH}")
    if isinstance(node, MovingJoin) and changing == [True, False]:
        raise InvalidInput(f"the right side of this join is a stream; {_BOTH}")
    if not any(changing):
        if isinstance(node, ToStream | MovingJoin):
            what = node.change.upper() if isinstance(node, ToStream) else "this join"
            raise InvalidInput(
                f"{what} goes over a moving window, such as [ROWS 100]; over a stream, leave it out"
            )
        return
    if not isinstance(node, Filter | Project | Aggregate | MovingJoin | ToStream):
        raise InvalidInput(RELATION)
    summed = any(isinstance(each.node, Aggregate) for below in given for each in below.walk())
    plain = isinstance(node, Project) and all(
        isinstance(column.expression, AttributeRef) for column in node.columns
    )
    if summed and not (plain or isinstance(node, ToStream)):
        raise InvalidInput(
            "over an aggregate of a moving window, a query names keys and aggregates only; compute "
            "with them in a query over this one's output"
        )
    if isinstance(node, MovingJoin) and any(
        isinstance(each.node, MovingJoin) for below in given for each in below.walk()
    ):
        raise InvalidInput("a query joins two moving windows, and no more")


_BOTH = "give it a moving window too, such as [NOW], [RANGE 5 MINUTES] or [ROWS 100]"


def moving_schema(window: MovingWindow, given: CheckedNode) -> Schema:
    """The attributes of a moving window's tuples. Raises InvalidInput for a wrong window."""
    require_event_time(given, "a moving window")
    if given.keeps_state:
        raise InvalidInput("a moving window goes over streams; " + OWN_QUERY)
    for each in given.walk():
        if isinstance(each.node, Source) and each.node.relation.kind is not RelationKind.STREAM:
            raise InvalidInput(
                f"a moving window reads streams, and {each.node.relation.name} is an output; read "
                "the streams themselves"
            )
    for key in window.partition:
        type_of(key, given.schema)
    _check_lengths(window)
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
    if window.rows is None and window.partition:
        raise InvalidInput("PARTITION BY goes with ROWS; other windows need no partitions")


def pairs_schema(node: MovingJoin, left: CheckedNode, right: CheckedNode) -> Schema:
    """The attributes of the pairs of two relations. Raises InvalidInput."""
    return joined_schema(left.schema, right.schema, node.equal, node.condition)


def stream_schema(given: CheckedNode) -> Schema:
    """The attributes of the stream of a relation. Raises InvalidInput."""
    if INSTANT in given.schema.names:
        raise InvalidInput(
            f"{INSTANT!r} is the name of the time at which a row comes or goes; rename "
            "your attribute with AS"
        )
    check_pairs(given)
    instant = Attribute(INSTANT, Type.TIMESTAMP, required=True)
    return Schema((instant, *given.schema.attributes))
