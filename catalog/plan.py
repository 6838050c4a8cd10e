"""The plan of a query: one tree of frozen values, independent of front end and engine.

Each node names its inputs; the tuples that flow along an edge have the schema that
`catalog.plan_check.output_schema` gives. Labels are never mentioned: every node's rule is that a
result carries the union of the labels of all that it was derived from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from catalog.expression import AttributeRef, Expression
from catalog.relation import Relation


@dataclass(frozen=True, slots=True)
class Source:
    """All tuples of a relation, from when the query was added on."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class Filter:
    """The tuples for which the condition is true (not false, not NULL)."""

    input: Plan
    condition: Expression


@dataclass(frozen=True, slots=True)
class Column:
    """A named result of a Project."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """A new tuple from each: exactly these columns (Borealis: map)."""

    input: Plan
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """All tuples of all inputs; the inputs' schemas agree in names and types."""

    inputs: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Windows over event time: [n·slide, n·slide + size), aligned to 1970 UTC, in milliseconds.

    `slide == size` is a tumbling window (TUMBLE), a smaller slide a hopping one (HOP).
    """

    size_ms: int
    slide_ms: int


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A named result of an Aggregate; `argument` None is count(*)."""

    name: str
    function: str
    argument: Expression | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One tuple per window and keys, sent once, when the watermark has passed the window's end.

    The result's attributes are `window_start`, `window_end`, the keys, the aggregations. With
    `updates` (EMIT UPDATES) a result is sent each time that tuples have joined its group, with what
    the group holds by then: the last one is the result of the whole.
    """

    input: Plan
    window: Window
    keys: tuple[Column, ...]
    aggregations: tuple[Aggregation, ...]
    updates: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs with equal attributes whose event times are near each other (interval join).

    `equal` holds (left, right) attribute pairs, at least one. The right tuple's event time lies in
    [left + lower_ms, left + upper_ms]. `condition`, over the attributes of both, filters further.
    The result has the attributes of both, whose names are disjoint; its event time is the left's.
    """

    left: Plan
    right: Plan
    equal: tuple[tuple[AttributeRef, AttributeRef], ...]
    lower_ms: int
    upper_ms: int
    condition: Expression | None = None


Plan = Source | Filter | Project | Union | Aggregate | Join
WINDOW_START, WINDOW_END = "window_start", "window_end"


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The nodes that a node reads."""
    match plan:
        case Source():
            return ()
        case Filter(node) | Project(node) | Aggregate(node):
            return (node,)
        case Union(nodes):
            return nodes
        case Join(left, right):
            return (left, right)


def walk(plan: Plan) -> Iterator[Plan]:
    """Every node, inputs first. Without recursion: it also counts plans that are too deep."""
    waiting = [(plan, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        else:
            waiting.append((node, True))
            waiting.extend((below, False) for below in reversed(inputs(node)))


def sources(plan: Plan) -> tuple[Relation, ...]:
    """The relations that a plan reads, each once, in reading order."""
    found = {node.relation.name: node.relation for node in walk(plan) if isinstance(node, Source)}
    return tuple(found.values())


def with_relations(plan: Plan, seen: Callable[[Relation], Relation]) -> Plan:
    """The plan over what `seen` makes of each relation that it reads."""
    match plan:
        case Source(relation):
            return Source(seen(relation))
        case Filter(node) | Project(node) | Aggregate(node):
            return replace(plan, input=with_relations(node, seen))
        case Union(nodes):
            return Union(tuple(with_relations(node, seen) for node in nodes))
        case Join(left, right):
            return replace(plan, left=with_relations(left, seen), right=with_relations(right, seen))


def gives_updates(plan: Plan) -> bool:
    """Whether results are sent before their window has closed; then all of the plan's are."""
    return any(isinstance(node, Aggregate) and node.updates for node in walk(plan))


def is_stateful(plan: Plan) -> bool:
    """Whether the plan keeps tuples: it then runs in micro-batches, else under real-time mode."""
    return any(isinstance(node, Aggregate | Join) for node in walk(plan))
