"""What goes with the event time: starts of windows, and times that a join makes equal."""

from __future__ import annotations

import pytest

from catalog.analysis import analyse_node
from catalog.moments import closing, moments, same
from catalog.plan import (
    Column,
    Filter,
    JoinKind,
    Node,
    Project,
    SessionWindow,
    Union,
    Window,
)
from tests.plans import grouped
from tests.unit.catalog.plans import (
    COUNT,
    JOINED,
    MINUTE,
    OTHER,
    SOURCE,
    TIMELESS,
    WINDOWED,
    call,
    column,
    joined,
    ref,
)

START, END = column("window_start"), column("window_end")
HOPPING = grouped(SOURCE, Window(60_000, 20_000, 5_000), (), (COUNT,))
SESSION = grouped(SOURCE, SessionWindow(1_000), (), (COUNT,))
RENAMED = Project(
    WINDOWED,
    (
        Column("since", ref("window_start")),
        Column("until", ref("window_end")),
        Column("name", ref("symbol")),
    ),
)


def pair(kind: JoinKind, lower: int, upper: int) -> Node:
    """Windows with windows."""
    equal = ((ref("symbol"), ref("name")),)
    return joined(
        left=WINDOWED, right=RENAMED, equal=equal, lower_ms=lower, upper_ms=upper, kind=kind
    )


OWN = {"window_start": -60_000, "window_end": 0}
MOMENTS: dict[str, tuple[Node, dict[str, int]]] = {
    "a stream": (SOURCE, {"at": 0}),
    "no time": (TIMELESS, {}),
    "windows": (WINDOWED, OWN),
    "a session has no size": (SESSION, {"window_end": 0}),
    "a filter": (Filter(HOPPING, call("is_null", ref("n"))), OWN),
    "other names": (RENAMED, {"since": -60_000, "until": 0}),
    "without the end": (Project(WINDOWED, (START,)), {}),
    "a computed start": (
        Project(WINDOWED, (END, Column("s", call("coalesce", *[ref("window_start")] * 2)))),
        {"window_end": 0},
    ),
    "a join": (JOINED, {"at": 0}),
    "windows at once": (pair(JoinKind.INNER, 0, 0), {**OWN, "since": -60_000, "until": 0}),
    "windows apart": (pair(JoinKind.INNER, 500, 500), {**OWN, "since": -59_500, "until": 500}),
    "windows near": (pair(JoinKind.INNER, 0, 1), OWN),
    "what may be absent": (pair(JoinKind.LEFT, 0, 0), OWN),
    "the right side": (pair(JoinKind.RIGHT, 0, 0), {"since": -60_000, "until": 0}),
    "no side": (pair(JoinKind.FULL, 0, 0), {}),
    "the left side": (pair(JoinKind.SEMI, 0, 0), OWN),
    "equal branches": (Union((WINDOWED, WINDOWED)), OWN),
    "other branches": (
        Union(
            (
                Project(grouped(SOURCE, MINUTE, (), (COUNT,)), (START, END)),
                Project(
                    grouped(SOURCE, Window(10_000, 10_000), (), (COUNT,)),
                    (START, END),
                ),
            )
        ),
        {"window_end": 0},
    ),
}


@pytest.mark.parametrize(("node", "known"), MOMENTS.values(), ids=MOMENTS.keys())
def test_what_goes_with_the_event_time(node: Node, known: dict[str, int]) -> None:
    assert dict(moments(analyse_node(node))) == known


CLOSING: dict[str, tuple[Node, Window | None]] = {
    "a stream": (SOURCE, None),
    "windows": (HOPPING, Window(60_000, 20_000, 5_000)),
    "a session": (SESSION, None),
    "other names": (RENAMED, MINUTE),
    "a filter": (Filter(WINDOWED, call("is_null", ref("n"))), MINUTE),
    "without the end": (Project(WINDOWED, (START,)), None),
    "the left side": (joined(left=WINDOWED), MINUTE),
    "the stream's side": (joined(left=WINDOWED, kind=JoinKind.RIGHT), None),
    "no side": (joined(left=WINDOWED, kind=JoinKind.FULL), None),
    "equal branches": (Union((WINDOWED, WINDOWED)), MINUTE),
    "other branches": (
        Union((Project(WINDOWED, (END,)), Project(OTHER, (Column("window_end", ref("when")),)))),
        None,
    ),
}


@pytest.mark.parametrize(("node", "windows"), CLOSING.values(), ids=CLOSING.keys())
def test_whose_ends_are_the_event_times(node: Node, windows: Window | None) -> None:
    assert closing(analyse_node(node)) == windows


@pytest.mark.parametrize("windows", [MINUTE, Window(60_000, 20_000, 5_000), Window(9, 3, 2)])
def test_the_same_windows_hold_one_end_each(windows: Window) -> None:
    again = same(windows)
    ends = [windows.offset_ms + n * windows.slide_ms + windows.size_ms for n in range(-3, 4)]
    # The last moment of a window, a thousandth of a millisecond before its end.
    held = [(end - 1 - again.offset_ms) // again.slide_ms for end in ends]
    assert len({*held}) == len(ends)
    assert all(
        (place + 1) * again.slide_ms + again.offset_ms == end
        for place, end in zip(held, ends, strict=True)
    )
