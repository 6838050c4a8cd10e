"""The boxes that give the tuples of their input: bsort and delay."""

from __future__ import annotations

from dataclasses import replace

from catalog.errors import InvalidInput
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.flow import Flow
from secadmin.languages.borealis.notes import Notes


def bsort(box: Box, source: Flow, notes: Notes) -> Flow:
    """The input itself, if the box sorts by event time. Raises InvalidInput if not.

    Windows and joins go by event time, in whatever order the tuples come. So they need no sorting.
    The order itself would show only in an output, which `diagram.py` refuses.
    """
    box.parameters.check("order-on", "slack", "group-by")
    order = box.parameters.need("order-on")
    if order.text != source.built.event_time:
        time = source.built.event_time
        only = f"order-on is the event time, which is {time}" if time else "the input has none"
        raise InvalidInput(
            f"a bsort sorts by event time only: {only}; sort by {order.text[:40]!r} what you "
            "receive, and leave the box out",
            order.place(),
        )
    notes.add(
        "bsort does nothing: windows and joins go by event time, in whatever order tuples come",
        box.position,
    )
    return replace(source, sorted_by=box.name)


def delay(box: Box, source: Flow, notes: Notes) -> Flow:
    """The input itself. In Borealis the box costs time, and gives the same tuples."""
    box.parameters.check("delay-ms", "churn")
    notes.add("delay does nothing: no box holds tuples back", box.position)
    return source
