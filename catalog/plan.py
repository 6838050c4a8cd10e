"""The plan of a query: one tree of frozen values, independent of front end and engine.

Each node holds its inputs. `catalog.analysis.analyse` says what flows along the edges. Labels are
never mentioned: every node's rule is that a result carries the union of the labels of all that it
was derived from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from catalog.expression import AttributeRef, Expression
from catalog.relation import Relation


@dataclass(frozen=True, slots=True)
class Source:
    """All tuples of a relation, from when the query was added on."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class Filter:
    """The tuples for which the condition is true (not false, not NULL)."""

    input: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Column:
    """A named result of a Project."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """A new tuple from each: exactly these columns (Borealis: map)."""

    input: Node
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """All tuples of all inputs; the inputs' schemas agree in names and types."""

    inputs: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Windows over event time: [n·slide, n·slide + size), aligned to 1970 UTC, in milliseconds.

    `slide == size` is a tumbling window (TUMBLE), a smaller slide a hopping one (HOP).
    """

    size_ms: int
    slide_ms: int


@dataclass(frozen=True, slots=True)
class Windowed:
    """The tuples of a stream, each in all windows that its event time lies in.

    The tuples keep their attributes. An Aggregate reads them window by window.
    """

    input: Node
    window: Window


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A named result of an Aggregate; `argument` None is count(*)."""

    name: str
    function: str
    argument: Expression | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One tuple per window and keys. The input is Windowed.

    The result's attributes are `window_start`, `window_end`, the keys, the aggregations.
    """

    input: Node
    keys: tuple[Column, ...]
    aggregations: tuple[Aggregation, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs with equal attributes whose event times are near each other (interval join).

    `equal` holds (left, right) attribute pairs, at least one. The right tuple's event time lies in
    [left + lower_ms, left + upper_ms]. `condition`, over the attributes of both, filters further.
    The result has the attributes of both, whose names are disjoint; its event time is the left's.
    """

    left: Node
    right: Node
    equal: tuple[tuple[AttributeRef, AttributeRef], ...]
    lower_ms: int
    upper_ms: int
    condition: Expression | None = None


Node = Source | Filter | Project | Union | Windowed | Aggregate | Join
WINDOW_START, WINDOW_END = "window_start", "window_end"


class Emission(StrEnum):
    """When the results of a plan are sent.

    CLOSED: each result once, when no tuple can change it any more. The result of a window is sent
    when the watermark has passed the window's end. UPDATES (EMIT UPDATES): the result of a group
    each time that tuples have joined the group, with what the group holds by then. The last one is
    the result of the whole.
    """

    CLOSED = "closed"
    UPDATES = "updates"


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole query: what it computes, and when it sends the results."""

    root: Node
    emission: Emission = Emission.CLOSED


def inputs(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads."""
    match node:
        case Source():
            return ()
        case Filter(below) | Project(below) | Windowed(below) | Aggregate(below):
            return (below,)
        case Union(several):
            return several
        case Join(left, right):
            return (left, right)


def walk(root: Node) -> Iterator[Node]:
    """Every node, inputs first. Without recursion: it also counts plans that are too deep."""
    waiting = [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        else:
            waiting.append((node, True))
            waiting.extend((below, False) for below in reversed(inputs(node)))


def sources(plan: Plan) -> tuple[Relation, ...]:
    """The relations that a plan reads, each once, in reading order."""
    found = {each.relation.name: each.relation for each in source_nodes(plan)}
    return tuple(found.values())


def source_nodes(plan: Plan) -> tuple[Source, ...]:
    """The places where a plan reads a relation, in reading order."""
    return tuple(node for node in walk(plan.root) if isinstance(node, Source))


def at_sources(plan: Plan, rewrite: Callable[[Source], Node]) -> Plan:
    """The plan with each Source replaced by what `rewrite` makes of it.

    All that changes a plan at its sources goes through here. The result is a new plan: analyse it.
    """
    return replace(plan, root=_rewritten(plan.root, rewrite))


def _rewritten(node: Node, rewrite: Callable[[Source], Node]) -> Node:
    match node:
        case Source():
            return rewrite(node)
        case Filter(below) | Project(below) | Windowed(below) | Aggregate(below):
            return replace(node, input=_rewritten(below, rewrite))
        case Union(several):
            return Union(tuple(_rewritten(below, rewrite) for below in several))
        case Join(left, right):
            return replace(node, left=_rewritten(left, rewrite), right=_rewritten(right, rewrite))


def is_stateful(plan: Plan) -> bool:
    """Whether the plan keeps tuples: it then runs in micro-batches, else under real-time mode."""
    return any(isinstance(node, Aggregate | Join) for node in walk(plan.root))
