"""What is known of the times of a node's tuples: which attributes go with the event time.

The end of a window is the event time of its results, and its start is the window's size before. So
a condition on the starts of two windows bounds the time of a join as one on the ends does.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef
from catalog.plan import (
    WINDOW_START,
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Project,
    Union,
    Unnest,
    Window,
    Windowed,
)

Moments = Mapping[str, int]
"""Attributes, each with how far it is behind the event time (ms)."""


def moments(checked: CheckedNode) -> Moments:
    """The attributes whose distance from the event time is the same for all tuples of a node.

    The event time is one of them, if there is one.
    """
    time = checked.event_time
    if time is None:
        return {}
    below = [moments(each) for each in checked.inputs]
    match checked.node:
        case Filter() | Unnest() | Windowed():
            return below[0]
        case Project(_, columns):
            return {
                each.name: below[0][each.expression.name]
                for each in columns
                if isinstance(each.expression, AttributeRef) and each.expression.name in below[0]
            }
        case Aggregate(Windowed(_, Window(size_ms=size))):
            return {time: 0, WINDOW_START: -size}
        case Union():
            shared = set.intersection(*({*each.items()} for each in below))
            return dict(shared)
        case Join() as join:
            return _of_join(join, *below)
        case _:
            return {time: 0}


def _of_join(join: Join, left: Moments, right: Moments) -> Moments:
    """Those of the side whose event time a pair has, and of the other one if it is bound to it."""
    if join.kind is JoinKind.RIGHT:
        return right
    if join.kind is JoinKind.INNER and join.lower_ms == join.upper_ms:
        return {**left, **{name: behind + join.lower_ms for name, behind in right.items()}}
    return left


def closing(checked: CheckedNode) -> Window | None:
    """The windows whose ends are the event times of a node's tuples.

    None if they are not known, or follow the tuples.
    """
    match checked.node:
        case Aggregate(Windowed(_, Window() as window)):
            return window
        case Filter() | Project() | Unnest():
            return None if checked.event_time is None else closing(checked.inputs[0])
        case Join(kind=kind):
            if checked.event_time is None:
                return None
            return closing(checked.inputs[1 if kind is JoinKind.RIGHT else 0])
        case Union():
            found = {closing(each) for each in checked.inputs}
            return found.pop() if len(found) == 1 and checked.event_time is not None else None
        case _:
            return None


def same(windows: Window) -> Window:
    """The windows over results of these, of which each has the results of one of these.

    Those that end together lie in the last slide before their end.
    """
    slide = windows.slide_ms
    return Window(slide, slide, (windows.offset_ms + windows.size_ms) % slide)
