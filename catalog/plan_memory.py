"""The memory of a plan: for how long a tuple counts in its results.

A result whose event time is later than E plus the memory depends on no tuple whose event time is E
or earlier. So two runs of one plan, of which one began later, agree on such results: both have seen
all that counts there (`catalog/SPEC.md`, "Memory"; `catalog.moves`).
"""

from __future__ import annotations

from catalog.checked_plan import CheckedNode, CheckedPlan
from catalog.pattern import NEXT_ROW, rows_back
from catalog.plan import (
    Aggregate,
    Emission,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingWindow,
    Source,
    ToStream,
    Window,
    Windowed,
)
from catalog.reach import counted_streams
from catalog.relation import RelationKind
from catalog.upserts import upsert_keys

_NEXT_INSTANT_MS = 1
"""A stream of changes compares each instant with the one before. Instants are microseconds."""


def shared_memory_ms(checked: CheckedPlan) -> int | None:
    """The memory of a plan whose state two executions may come to have in common, in milliseconds.

    None if its state is never shared. Then it has no memory that ends, or its results have no event
    time that tells which execution sends them. Or they depend on more than the tuples: on the cut
    of the batches (updates, sources whose time their data moves), on repeats after a crash (sources
    that are outputs), on who reads (upserts), or on when the query was added (declared aggregates).
    """
    if not checked.keeps_state or checked.emission is not Emission.CLOSED:
        return None
    plan, nodes = checked.plan, tuple(checked.root.walk())
    relations = [leaf.node.relation for leaf in nodes if isinstance(leaf.node, Source)]
    if not all(each.by_ticks and each.kind is RelationKind.STREAM for each in relations):
        return None
    if checked.event_time is None or upsert_keys(plan) or counted_streams(plan):
        return None
    return memory_ms(checked.root)


def memory_ms(each: CheckedNode) -> int | None:
    """The memory of a node, in milliseconds. None if a tuple may count for ever."""
    below = [memory_ms(given) for given in each.inputs]
    known = [given for given in below if given is not None]
    if len(known) < len(below):
        return None
    longest = max(known, default=0)
    match each.node:
        case Aggregate(Windowed(_, Window(size_ms=size))):
            return longest + size
        case Aggregate(Windowed()):
            # A session may begin at any time, and goes on as long as tuples come.
            return None
        case Join() as join:
            return _of_pairs(join, *known)
        case Moving(_, window):
            held = _held_ms(window)
            return None if held is None else longest + held
        case ToStream():
            return longest + _NEXT_INSTANT_MS
        case Match() as match:
            return longest + match.within_ms if _is_alone(match) else None
        case _:
            return longest


def _of_pairs(join: Join, left: int, right: int) -> int | None:
    """A pair has the event time of one side, and its other tuple is near that."""
    match join.kind:
        case JoinKind.FULL:
            return None
        case JoinKind.RIGHT:
            return max(right, left + join.upper_ms)
        case _:
            return max(left, right - join.lower_ms)


def _held_ms(window: MovingWindow) -> int | None:
    """For how long a tuple is in the window. None if only other tuples end that."""
    if window.range_ms is None or window.rows is not None:
        return None
    return window.range_ms + (window.slide_ms or 0)


def _is_alone(match: Match) -> bool:
    """Whether no match depends on an earlier one, or on rows outside of it.

    Where the search goes on behind a match, one match decides where the next one may begin, and so
    on without an end.
    """
    readings = (*match.readings, *match.measures)
    return match.skip == NEXT_ROW and not rows_back(readings) and not match.rows_ahead
