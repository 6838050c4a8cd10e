"""The meaning of SIF-CQL, function by function as paper 001 defines it (§4 and §4.1).

Nothing here knows of categories, of labels, or of the platform's plans. A level is a vector
(`tests.oracle.levels`). An element is a tuple with its level and its instant. Tuples differ from
each other, so that a set stands for the paper's bag.

At one point the paper is not finite: RStream gives a relation at each instant. Here, as on the
platform, it gives it at each instant at which a window changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.oracle.levels import Level, dominated, lub
from tests.oracle.values import Value

Row = tuple[Value, ...]
Element = tuple[Row, Level, int]
Stream = frozenset[Element]
# Of the relation domain for one level: an instant gives tuples, each with its level.
Bag = frozenset[tuple[Row, Level]]
Relation = Callable[[int], Bag]


class Kind(StrEnum):
    """The sliding windows: a stream to a relation (S2R)."""

    NOW = "NOW"
    RANGE = "RANGE"
    ROWS = "ROWS"


@dataclass(frozen=True, slots=True)
class Where:
    """Filter(i, v): the attribute with the number i has the value v."""

    attribute: int
    value: Value

    def holds(self, row: Row) -> bool:
        """Whether it is true of the tuple."""
        return row[self.attribute] == self.value


@dataclass(frozen=True, slots=True)
class Window:
    """S2R: Now, Range(T) or Row(N), perhaps with a condition."""

    kind: Kind
    size: int = 0
    only: Where | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """R2R: the tuples of a relation of which the condition is true."""

    over: Window | SemiJoin
    where: Where


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """R2R: the tuples of the first relation with a partner in the second one."""

    first: Window
    second: Window
    mine: int
    other: int


class Change(StrEnum):
    """R2S."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"


@dataclass(frozen=True, slots=True)
class ToStream:
    """A query that gives a stream."""

    change: Change
    over: Window | Filter | SemiJoin


def shepherd(trusted: Stream, level: Level) -> Stream:
    """M_S2S: the single level stream of a trusted stream (definitions 5 and 6)."""
    return frozenset(each for each in trusted if dominated(each[1], level))


def meaning(query: ToStream, trusted: Stream, level: Level) -> Stream:
    """M_S: the stream that a query gives at a level, up to the end of time."""
    stream = shepherd(trusted, level)
    relation = relation_of(query.over, stream, level)
    windows = [_content(window, stream, level) for window in _windows(query.over)]
    found: set[Element] = set()
    for at in _instants(query.over, stream):
        before, now = relation(at - 1), relation(at)
        match query.change:
            case Change.ISTREAM:
                rows = now - before
            case Change.DSTREAM:
                rows = before - now
            case Change.RSTREAM:
                changes = any(window(at) != window(at - 1) for window in windows)
                rows = now if changes else frozenset()
        found |= {(row, own, at) for row, own in rows if dominated(own, level)}
    return frozenset(found)


def relation_of(query: Window | Filter | SemiJoin, stream: Stream, level: Level) -> Relation:
    """M_R: the relation that a query gives at a level (definition 7)."""
    match query:
        case Window():
            return _content(query, stream, level)
        case Filter(over, where):
            below = relation_of(over, stream, level)
            return lambda at: frozenset(each for each in below(at) if where.holds(each[0]))
        case SemiJoin(first, second, mine, other):
            left, right = (_content(each, stream, level) for each in (first, second))
            return lambda at: frozenset(
                (one, lub([low, high], len(level)))
                for one, low in left(at)
                for two, high in right(at)
                if one[mine] == two[other]
            )


def _content(window: Window, stream: Stream, level: Level) -> Relation:
    """M_S2R."""
    seen = [
        each
        for each in stream
        if dominated(each[1], level) and (window.only is None or window.only.holds(each[0]))
    ]

    def at(instant: int) -> Bag:
        match window.kind:
            case Kind.NOW:
                found = [each for each in seen if each[2] == instant]
            case Kind.RANGE:
                found = [each for each in seen if instant - window.size <= each[2] <= instant]
            case Kind.ROWS:
                found = [
                    each
                    for each in seen
                    if each[2] <= instant
                    and window.size >= sum(each[2] <= other[2] <= instant for other in seen)
                ]
        return frozenset((row, own) for row, own, _ in found)

    return at


def _windows(query: Window | Filter | SemiJoin) -> Iterator[Window]:
    match query:
        case Window():
            yield query
        case Filter(over, _):
            yield from _windows(over)
        case SemiJoin(first, second, _, _):
            yield from (first, second)


def _instants(query: Window | Filter | SemiJoin, stream: Stream) -> list[int]:
    """The instants at which a relation can change: tuples come, or time takes them away."""
    lengths = [each.size for each in _windows(query) if each.kind is Kind.RANGE]
    lengths += [0 for each in _windows(query) if each.kind is Kind.NOW]
    times = {time for *_, time in stream}
    return sorted(times | {time + length + 1 for time in times for length in lengths})
