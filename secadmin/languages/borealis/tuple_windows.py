"""The aggregate box with window-size-by TUPLES: windows that count tuples (002 §2.2).

The tuples of each group are counted in the order of their event times. A window is full with so
many tuples, and the next one begins so many tuples later. Each full window gives one result (of
those that are full at one time, the last one does). It carries the labels of all tuples of the
group that were counted so far, because these decide where the window begins (catalog/SPEC.md,
Moving.11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.plan import (
    INSTANT,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Moving,
    MovingWindow,
    Project,
    ToStream,
)
from catalog.plan_rules import MAX_ROWS
from secadmin.languages.borealis.event_time import check_event_time
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.borealis.parameters import Parameter, Parameters
from secadmin.languages.building import Built, build

# The names of what no result shows, if they are free.
_BEGAN, _MOVED = "began", "moved"
_NOTED = {
    "drop-empty-outputs": "a group without tuples gives no result",
    "independent-window-alignment": "each group counts its own tuples",
}


def tuple_windows(
    parameters: Parameters,
    source: Built,
    keys: tuple[Column, ...],
    aggregations: tuple[Aggregation, ...],
) -> Built:
    """The results of windows of tuples. Raises InvalidInput.

    With `order-by` TUPLENUM they have the keys and the functions. With FIELD they also have the
    event time of the window's first tuple, under the name of `order-on-field`. With the name of the
    event time they have `instant` in front, the time at which the window was full.
    """
    place = parameters.position
    order = _order(parameters, source)
    window = _window(parameters, keys)
    time = AttributeRef(source.event_time or "", place)
    taken = {column.name for column in keys} | {each.name for each in aggregations}
    began, moved = _free(_BEGAN, taken), _free(_MOVED, taken)
    more = [Aggregation(began, "min", time)] if order == "FIELD" else []
    # Equal results of two windows would cancel each other out. So the time tells them apart.
    more.append(Aggregation(moved, "max", time))
    moving = build(Moving(source.node, window), (source,), place)
    groups = build(Aggregate(moving.node, keys, (*aggregations, *more)), (moving,), place)
    stream = build(ToStream(groups.node, Change.ISTREAM), (groups,), place)
    shown = [Column(name, AttributeRef(name, place)) for name in _names(keys, aggregations)]
    if order == "FIELD":
        field = parameters.need("order-on-field")
        shown.insert(len(keys), Column(field.text, AttributeRef(began, field.place())))
    elif order != "TUPLENUM":
        shown.insert(0, Column(INSTANT, AttributeRef(INSTANT, place)))
    return build(Project(stream.node, tuple(shown)), (stream,), place)


def note_differences(parameters: Parameters, notes: Notes) -> None:
    """Note what Borealis does otherwise. Raises InvalidInput if the box asks for it."""
    place = parameters.position
    notes.add(
        "tuples are counted in the order of event time, and not of arrival; of windows that are "
        "full at one time, the last one gives a result",
        place,
    )
    for name, here in _NOTED.items():
        parameters.choice(name, "0", "1", required=False)
        found = parameters.get(name)
        if found is not None and found.text == "0":
            raise InvalidInput(f"{name} is 1: {here}", found.place())
    timeout = parameters.get("timeout")
    if timeout is not None and not timeout.text.startswith("-") and timeout.text != "0":
        notes.add(
            "timeout is not used: a window waits for its tuples, however long that takes",
            timeout.position,
        )


def _names(keys: Iterable[Column], aggregations: Iterable[Aggregation]) -> list[str]:
    return [*(key.name for key in keys), *(each.name for each in aggregations)]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _order(parameters: Parameters, source: Built) -> str:
    """FIELD, TUPLENUM, or the event time."""
    order, field = parameters.need("order-by"), parameters.get("order-on-field")
    if source.event_time is None:
        raise InvalidInput(
            "windows of tuples count in the order of event time, but this input has none: keep the "
            "stream's event-time attribute under one name",
            order.place(),
        )
    if source.checked.keeps_state:
        raise InvalidInput(
            "windows of tuples go over streams, and not over the results of windows and joins; add "
            "what comes before this box as a query of its own, and read its output",
            parameters.position,
        )
    written = order.text.upper()
    if written == "FIELD":
        check_event_time(parameters.need("order-on-field"), source)
        return written
    if field is not None and written == "TUPLENUM":
        check_event_time(field, source)
    elif field is not None:
        raise InvalidInput("order-on-field goes with order-by FIELD", field.place())
    if written == "TUPLENUM":
        return written
    check_event_time(order, source)
    return order.text


def _window(parameters: Parameters, keys: tuple[Column, ...]) -> MovingWindow:
    size, advance = parameters.need("window-size"), parameters.need("advance")
    rows = _number(size, f"window-size is a number of tuples, from 1 to {MAX_ROWS}", MAX_ROWS)
    slide = _number(
        advance,
        "advance is a number of tuples, from 1 to window-size, because a larger one would leave "
        "out tuples between two windows",
        rows,
    )
    partition = tuple(AttributeRef(key.name, _place(key)) for key in keys)
    window = MovingWindow(rows=rows, partition=partition)
    # A window of one tuple is full with each tuple.
    return window if rows == 1 else replace(window, slide_rows=slide)


def _number(parameter: Parameter, words: str, most: int) -> int:
    text = parameter.text.strip()
    plain = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_ROWS))
    if not plain or not 1 <= int(text) <= most:
        raise InvalidInput(words, parameter.place())
    return int(text)


def _place(key: Column) -> Position | None:
    return key.expression.position
