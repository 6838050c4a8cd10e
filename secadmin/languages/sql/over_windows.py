"""OVER over the results of windows of time: the first groups of each window (window top-N).

The results of the windows that end at an instant are a relation then, `[NOW]`. All of its rows are
sent at this instant (RSTREAM), so each carries the labels of all of them: what a tuple changes in
one group shows in the places of the others.
"""

from __future__ import annotations

from dataclasses import replace

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.moments import moments
from catalog.moving_check import NOW, gives_windows
from catalog.plan import INSTANT, Change, Column, Filter, Moving, Project, Ranked, ToStream, walk
from secadmin.languages.building import Built, build
from secadmin.languages.text import placed


def now_of_windows(source: Built, place: Position) -> Built | None:
    """The results of windows at the instant at which they close. None if these are no such results.

    What a query does with the single results is done with the rows of this relation. So a row that
    a condition leaves out counts among the labels.
    """
    layers, checked = [], source.checked
    while isinstance(checked.node, Filter | Project):
        layers.append(checked.node)
        checked = checked.inputs[0]
    if not gives_windows(checked):
        return None
    if source.event_time is None:
        raise InvalidInput(
            "OVER goes over the results of one window: add window_end to the results of the query "
            "that it goes over",
            place,
        )
    with placed(place):
        built = Built(checked, source.parts)
        built = build(Moving(checked.node, NOW), (built,), place)
        for layer in reversed(layers):
            built = build(replace(layer, input=built.node), (built,), place)
    return built


def require_one_window(ranked: Built, source: Built, place: Position) -> None:
    """Refuse an order that goes over several windows, which are not there together.

    `source` has the results of the windows, and `ranked` those in their order.
    """
    edges = moments(source.checked)
    (order,) = (node for node in walk(ranked.node) if isinstance(node, Ranked))
    if not any(each.name in edges for each in order.partition):
        known = " or ".join(sorted(edges))
        raise InvalidInput(
            f"OVER goes over the results of one window: add {known} to PARTITION BY; for an order "
            "of the results of several windows, add them as a query of its own, and write OVER "
            "over the output of that",
            place,
        )


def stream_of_windows(relation: Built, place: Position) -> Built:
    """The stream of the rows of windows, as SELECT names them. The end of a window is its time."""
    stream = build(ToStream(relation.node, Change.RSTREAM), (relation,), place)
    columns = (
        Column(name, AttributeRef(INSTANT if name == relation.event_time else name, place))
        for name in relation.schema.names
    )
    return build(Project(stream.node, tuple(columns)), (stream,), place)
