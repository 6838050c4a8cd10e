"""What the paper's obligations, and parts of its queries, mean over a stream (002, section 2.2)."""

from __future__ import annotations

from catalog.errors import InvalidInput
from catalog.relation import Relation
from catalog.role_view import RoleView, SmallestWindow, TupleWindow
from secadmin.control.policy_text import WrittenRight, WrittenView, read_view
from secadmin.languages.writing.expression_text import name_text
from secadmin.xacml.condition import Comparison, Condition, Junction, Negation
from secadmin.xacml.stream_view import StreamView, Window

NOTHING = "FALSE"
"""The condition of no row."""
# A unit of the paper's windows of time.
_UNIT_MS = 1_000
_FUNCTIONS = {"firstvalue": "first", "lastvalue": "last"}
# The first and the last value of the event time are its smallest and its largest one.
_OF_EVENT_TIME = {"firstvalue": "min", "lastvalue": "max"}


def xacml_view(view: StreamView, stream: Relation) -> RoleView:
    """The view of the stream. Names are compared without case. Raises InvalidInput."""
    if view.denied:
        return read_view(WrittenView(NOTHING), stream)
    rows = None if view.condition is None else condition_text(view.condition, stream)
    if view.window is None:
        shown = view.attributes
        rights = None if shown is None else tuple(WrittenRight(own_name(n, stream)) for n in shown)
        return read_view(WrittenView(rows, rights), stream)
    window = view.window
    # A name that the window and the map do not share is left out, but a mistyped one is told.
    for attribute in sorted({*(view.attributes or ()), *(name for name, _ in window.functions)}):
        own_name(attribute, stream)
    smallest = (
        TupleWindow(window.size, window.step)
        if window.type == "tuple"
        else SmallestWindow(window.size * _UNIT_MS, window.step * _UNIT_MS)
    )
    return read_view(WrittenView(rows, aggregated(view, window, stream), smallest), stream)


def aggregated(view: StreamView, window: Window, stream: Relation) -> tuple[WrittenRight, ...]:
    """The attributes of a window with their functions. Raises InvalidInput."""
    functions: dict[str, list[str]] = {}
    for attribute, function in sorted(window.functions):
        if view.attributes is None or attribute in view.attributes:
            name = own_name(attribute, stream)
            functions.setdefault(name, []).append(_function(function, name, stream))
    return tuple(WrittenRight(name, None, tuple(own)) for name, own in functions.items())


def _function(function: str, name: str, stream: Relation) -> str:
    known = _OF_EVENT_TIME if name == stream.event_time else _FUNCTIONS
    return known.get(function, function)


def own_name(attribute: str, stream: Relation) -> str:
    """The stream's own name of an attribute. Raises InvalidInput."""
    alike = [name for name in stream.schema.names if name.lower() == attribute]
    if len(alike) != 1:
        known = ", ".join(stream.schema.names)
        found = "several attributes" if alike else "no attribute"
        raise InvalidInput(f"{stream.name} has {found} {attribute!r}; there are: {known}")
    return alike[0]


def condition_text(condition: Condition, stream: Relation) -> str:
    """The condition in SQL, with the stream's names."""
    match condition:
        case Comparison(attribute):
            name = name_text(own_name(attribute, stream))
            return str(condition).replace(attribute, name, 1)
        case Junction(word, parts):
            return f" {word} ".join(f"({condition_text(part, stream)})" for part in parts)
        case Negation(part):
            return f"NOT ({condition_text(part, stream)})"
