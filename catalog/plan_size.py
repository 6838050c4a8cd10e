"""The size of a plan in the engine, which replaces each column's name with its expression.

A column that is used eight times on each of nine levels occurs 8⁹ times in the engine. A call may
also contain its argument more than once (`ScalarFunction.copies`). So the size is counted as if
every name were replaced, down to the sources.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.functions import SCALAR_FUNCTIONS
from catalog.plan import (
    DELETED,
    INSTANT,
    MATCH_TIME,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Change,
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

# The largest number of attributes, constants and calls, in one expression and in a whole plan.
MAX_EXPRESSION = 10_000
MAX_PLAN = 100_000
Sizes = Mapping[str, int]


def sizes_of(node: Node, given: tuple[Sizes, ...], below: int) -> tuple[Sizes, int]:
    """The size of each attribute of the node's tuples, and the size of all expressions so far.

    `given` has the sizes of the inputs' attributes. `below` is the size of all expressions under
    the node. The node's types are already checked. Raises InvalidInput, with the position in the
    text, if something is too large.
    """
    counter = _Counter(below)
    counter.require_room(None)
    return counter.sizes(node, given), counter.total


class _Counter:
    """Counts the expressions of one node, and adds them to those below it."""

    def __init__(self, below: int) -> None:
        self.total = below

    def sizes(self, node: Node, given: tuple[Sizes, ...]) -> Sizes:
        match node:
            case Source():
                return dict.fromkeys(node.schema.names, 1)
            case Filter(_, condition):
                self._count(condition, given[0])
                return given[0]
            case Project(_, columns):
                return {c.name: self._count(c.expression, given[0]) for c in columns}
            case Unnest():
                self._count(node.array, given[0])
                # The engine makes these when it makes the tuples, so they have no expression.
                place = () if node.number is None else (node.number,)
                return {**given[0], **dict.fromkeys((node.name, *place), 1)}
            case Windowed() | Moving():
                return given[0]
            case Ranked():
                number = () if node.number is None else (node.number,)
                return {
                    **given[0],
                    **dict.fromkeys((*number, *(n.name for n in node.neighbours)), 1),
                }
            case ToStream():
                # The engine keeps the rows as state, so they have no expression any more.
                deleted = (DELETED,) if node.change is Change.UPSERT else ()
                return dict.fromkeys((INSTANT, *deleted, *given[0]), 1)
            case Union():
                rows = zip(*(branch.values() for branch in given), strict=True)
                return dict(zip(given[0], map(max, rows), strict=True))
            case Join(condition=condition) | MovingJoin(condition=condition):
                both = {**given[0], **given[1]}
                if condition is not None:
                    self._count(condition, both)
                return both if node.kind.shows_right else given[0]
            case Match():
                return self._match(node, given[0])
            case Aggregate():
                return self._aggregate(node, given[0])

    def _aggregate(self, node: Aggregate, given: Sizes) -> Sizes:
        keys = {key.name: self._count(key.expression, given) for key in node.keys}
        for aggregation in node.aggregations:
            if aggregation.argument is not None:
                self._count(aggregation.argument, given)
        # The engine keeps these values as state, so they have no expression any more.
        results = dict.fromkeys((a.name for a in node.aggregations), 1)
        edges = (WINDOW_START, WINDOW_END) if isinstance(node.input, Windowed) else ()
        return {**dict.fromkeys(edges, 1), **keys, **results}

    def _match(self, node: Match, given: Sizes) -> Sizes:
        """The size of a pattern. The values of rows are state, so they have no expression."""
        rows = {**given, **dict.fromkeys((each.name for each in node.readings), 1)}
        for definition in node.definitions:
            self._count(definition.condition, rows)
        for reading in (*node.readings, *node.measures):
            if reading.argument is not None:
                self._count(reading.argument, given)
        keys = given if node.per_row else [key.name for key in node.partition]
        return dict.fromkeys((MATCH_TIME, *keys, *(each.name for each in node.measures)), 1)

    def _count(self, expression: Expression, given: Sizes) -> int:
        size = size_of(expression, given)
        if size > MAX_EXPRESSION:
            raise _too_large("the expression", MAX_EXPRESSION, expression.position)
        self.total += size
        self.require_room(expression.position)
        return size

    def require_room(self, position: Position | None) -> None:
        """Raise InvalidInput where all expressions together are too large."""
        if self.total > MAX_PLAN:
            raise _too_large("the query", MAX_PLAN, position)


def _too_large(what: str, limit: int, position: Position | None) -> InvalidInput:
    return InvalidInput(
        f"{what} has more than {limit} parts if each computed column is written in full "
        "wherever it is used; use it fewer times, or compute it in a query of its own "
        "and read its output",
        position,
    )


def size_of(expression: Expression, given: Sizes) -> int:
    """The size of an expression over attributes of these sizes."""
    match expression:
        case AttributeRef(name):
            return given[name]
        case Literal():
            return 1
        case Call(function):
            within = _within(expression, given)
            return within * (SCALAR_FUNCTIONS[function].copies if _in_chain(expression) else 1)


def _within(call: Call, given: Sizes) -> int:
    """The size of a call. A chain of calls needs one check, at its end."""
    rule = SCALAR_FUNCTIONS[call.function]
    inner = [
        _within(part, given)
        if rule.chained and isinstance(part, Call) and _in_chain(part)
        else size_of(part, given)
        for part in call.arguments
    ]
    return 1 + sum(inner) * (1 if rule.chained else rule.copies)


def _in_chain(expression: Expression) -> bool:
    return isinstance(expression, Call) and SCALAR_FUNCTIONS[expression.function].chained
