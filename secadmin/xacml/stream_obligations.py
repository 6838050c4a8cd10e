"""The obligations of paper 002 (section 2.2, table 1), read into a view of a stream.

An enforcement point that does not understand an obligation must deny. So an unknown obligation,
an unknown attribute of one, and a missing attribute raise Denied.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from catalog.errors import Denied, InvalidInput
from secadmin.xacml.combining import Decision
from secadmin.xacml.condition import both, parse_condition
from secadmin.xacml.policies import Duty, Result
from secadmin.xacml.stream_view import StreamView, Window, attribute_name, function_name

_START = "exacml:obligation:stream-"
FILTER, MAP, WINDOW = (_START + name for name in ("filtering", "mapping", "window-aggregation"))
CONDITION = _START + "filter-condition-id"
ATTRIBUTE = _START + "map-attribute-id"
TYPE, SIZE, STEP, AGGREGATE = (
    f"{_START}window-{name}-id" for name in ("type", "size", "step", "attr")
)
# The attributes of each obligation: their data type, and whether there may be several.
_ATTRIBUTES = {
    FILTER: {CONDITION: ("string", False)},
    MAP: {ATTRIBUTE: ("string", True)},
    WINDOW: {
        TYPE: ("string", False),
        SIZE: ("integer", False),
        STEP: ("integer", False),
        AGGREGATE: ("string", True),
    },
}


class Unfulfilled(Denied):
    """An obligation cannot be fulfilled; `obligation` is its id."""

    def __init__(self, obligation: str, why: str) -> None:
        super().__init__(f"an obligation cannot be fulfilled: {why}")
        self.obligation = obligation


def view_of(result: Result) -> StreamView:
    """What a result permits: all its obligations hold together.

    Raises Denied unless the decision is Permit, and Unfulfilled unless every obligation can be
    fulfilled.
    """
    if result.decision is not Decision.PERMIT:
        raise Denied("the policies do not permit this")
    view = StreamView()
    for duty in result.obligations:
        try:
            view = _narrowed(view, duty)
        except InvalidInput as error:
            raise Unfulfilled(duty.id, error.detail) from None
    return view


def _narrowed(view: StreamView, duty: Duty) -> StreamView:
    if duty.id not in _ATTRIBUTES:
        raise InvalidInput(f"the obligation {duty.id} is unknown")
    values = _values(duty)
    if duty.id == FILTER:
        condition = both(view.condition, parse_condition(values[CONDITION][0]))
        return StreamView(condition, view.attributes, view.window)
    if duty.id == MAP:
        names = frozenset(attribute_name(one) for one in values[ATTRIBUTE])
        shown = names if view.attributes is None else names & view.attributes
        return StreamView(view.condition, shown, view.window)
    window = Window(
        values[TYPE][0].strip().lower(),
        values[SIZE][0],
        values[STEP][0],
        frozenset(_pair(one) for one in values[AGGREGATE]),
    )
    if view.window not in (None, window):
        raise InvalidInput("two policies demand different windows")
    return StreamView(view.condition, view.attributes, window)


def _values(duty: Duty) -> dict[str, list[Any]]:
    known = _ATTRIBUTES[duty.id]
    values: dict[str, list[Any]] = defaultdict(list)
    for one in duty.assignments:
        if one.attribute not in known or known[one.attribute][0] != one.data_type:
            raise InvalidInput(f"{one.attribute} of type {one.data_type} is unknown in {duty.id}")
        values[one.attribute].append(one.value)
    for attribute, (_, several) in known.items():
        if not values[attribute] or (len(values[attribute]) > 1 and not several):
            count = "at least one" if several else "exactly one"
            raise InvalidInput(f"{duty.id} needs {count} {attribute}")
    return values


def _pair(text: str) -> tuple[str, str]:
    attribute, colon, function = text.partition(":")
    if not colon:
        raise InvalidInput(f"{text[:40]!r} is not of the form attribute:function")
    return attribute_name(attribute), function_name(function)
