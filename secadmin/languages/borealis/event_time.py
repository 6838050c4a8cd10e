"""Checks that a box orders its tuples by event time, the only order that the platform has."""

from __future__ import annotations

from catalog.errors import InvalidInput
from secadmin.languages.borealis.parameters import Parameter
from secadmin.languages.building import Built


def check_event_time(parameter: Parameter, source: Built) -> None:
    """Raise InvalidInput unless the parameter names the attribute with the event time."""
    time = source.event_time
    if time is None:
        raise InvalidInput(
            "windows go by event time, but this input has none: "
            "keep the stream's event-time attribute under one name",
            parameter.place(),
        )
    if parameter.text != time:
        raise InvalidInput(f"windows go by the event time, which is {time}", parameter.place())
