"""Windows of policies: a query has one over each stream, and only whole ones (002, section 3.4).

Two windows of different sizes, or a window that the query saw only in part, differ in few tuples
from another one. The difference shows these tuples. Two windows of tuples differ in few tuples also
if they are equal and one of them counts a tuple less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from catalog.analysis import analyse_node
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import (
    WINDOW_START,
    Aggregate,
    Filter,
    Moving,
    Node,
    Plan,
    SessionWindow,
    Source,
    Window,
    Windowed,
    inputs,
    walk,
    with_inputs,
)
from catalog.schema import Type


def require_one_window(plan: Plan, streams: Collection[int]) -> None:
    """Raise InvalidInput if the plan has windows of two forms over one of the streams.

    `streams` are the ids of those that policies show only in windows.
    """
    windows: dict[int, set[Window | SessionWindow | Moving]] = {}
    for node in walk(plan.root):
        form: Window | SessionWindow | Moving
        if isinstance(node, Aggregate) and isinstance(node.input, Windowed):
            form, below = node.input.window, node.input.input
        elif isinstance(node, Moving):
            # Where a window of tuples begins depends on which tuples are counted.
            form, below = node, node.input
        else:
            continue
        for stream in _streams_below(below) & set(streams):
            windows.setdefault(stream, set()).add(form)
    if any(len(found) > 1 for found in windows.values()):
        raise InvalidInput(
            "your roles' policies allow one window over a stream, and the query has several that "
            "differ in size, slide or offset, or in the tuples that they count; use one of them"
        )


def from_whole_windows(plan: Plan, since_ms: Mapping[int, int]) -> Plan:
    """The plan without results of windows that the query may have seen only in part.

    `since_ms` has, for each stream that policies show only in windows, the time from which on the
    query sees all of its tuples. A window of tuples begins to count then.
    """
    return Plan(_from_whole(plan.root, since_ms), plan.emission) if since_ms else plan


def _from_whole(node: Node, since_ms: Mapping[int, int]) -> Node:
    new = with_inputs(node, tuple(_from_whole(below, since_ms) for below in inputs(node)))
    if not isinstance(node, Aggregate | Moving):
        return new
    if not isinstance(node, Moving) and not isinstance(node.input, Windowed):
        return new
    known = [since_ms[stream] for stream in _streams_below(node.input) if stream in since_ms]
    if not known:
        return new
    since = Literal(max(known) * 1000, Type.TIMESTAMP)
    if not isinstance(new, Moving):
        return Filter(new, Call(">=", (AttributeRef(WINDOW_START), since)))
    time = AttributeRef(analyse_node(new.input).event_time or "")
    return replace(new, input=Filter(new.input, Call(">=", (time, since))))


def _streams_below(node: Node) -> frozenset[int]:
    """The streams of which single tuples reach the node: those that no aggregate has taken in."""
    if isinstance(node, Source):
        return frozenset({node.relation.object_id})
    if isinstance(node, Aggregate):
        return frozenset()
    return frozenset().union(*map(_streams_below, inputs(node)))
