"""The customised query of paper 002 (section 3.1, figure 4a), from XML."""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.errors import InvalidInput
from secadmin.xacml.condition import parse_condition
from secadmin.xacml.stream_view import StreamView, Window, attribute_name, function_name
from secadmin.xacml.tree import Element, parse_tree

_CALL = re.compile(r"\s*(\w{1,128})\s*\(\s*(\w{1,128})\s*\)\s*", re.ASCII)
_NUMBER = re.compile(r"\s*(\d{1,10})\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class UserQuery:
    """What a user asks of a stream."""

    stream: str
    view: StreamView


def read_user_query(text: str) -> UserQuery:
    """The query of an XML text. Raises InvalidInput, with the position, if it cannot be read."""
    root = parse_tree(text, namespace="")
    if root.tag != "UserQuery":
        raise root.refused("a UserQuery is expected")
    parts = _by_tag(root, ("Stream", "Filter", "Map", "Aggregation"))
    if "Stream" not in parts:
        raise root.refused("exactly one Stream is expected")
    condition, attributes, window = None, None, None
    for tag, part in parts.items():
        try:
            if tag == "Filter":
                condition = parse_condition(
                    _by_tag(part, ("FilterCondition",), all_=True).popitem()[1].text
                )
            elif tag == "Map":
                attributes = frozenset(attribute_name(one.text) for one in _attributes(part))
            elif tag == "Aggregation":
                window = _window(part)
        except InvalidInput as error:
            raise error if error.position else part.refused(error.detail) from None
    stream = parts["Stream"].attribute("name")
    return UserQuery(stream, StreamView(condition, attributes, window))


def _by_tag(element: Element, tags: tuple[str, ...], *, all_: bool = False) -> dict[str, Element]:
    """The parts by their names, each at most once (with `all_`: exactly once)."""
    found: dict[str, Element] = {}
    for part in element.children:
        if part.tag not in tags or part.tag in found:
            raise part.refused(f"not expected here, or not twice, in {element.tag}")
        found[part.tag] = part
    if all_ and len(found) < len(tags):
        raise element.refused(f"{', '.join(tags)} must be inside")
    return found


def _attributes(element: Element) -> list[Element]:
    for part in element.children:
        if part.tag != "Attribute":
            raise part.refused("Attribute is expected here")
    if not element.children:
        raise element.refused("at least one Attribute is expected")
    return element.children


def _window(element: Element) -> Window:
    functions = [one for one in element.children if one.tag == "Attribute"]
    rest = Element(
        element.tag,
        element.attributes,
        element.position,
        [one for one in element.children if one.tag != "Attribute"],
    )
    parts = _by_tag(rest, ("WindowType", "WindowSize", "WindowStep"), all_=True)
    return Window(
        parts["WindowType"].text.strip().lower(),
        _number(parts["WindowSize"]),
        _number(parts["WindowStep"]),
        frozenset(_function(one) for one in functions),
    )


def _number(element: Element) -> int:
    found = _NUMBER.fullmatch(element.text)
    if found is None:
        raise element.refused("a whole number is expected")
    return int(found[1])


def _function(element: Element) -> tuple[str, str]:
    found = _CALL.fullmatch(element.text)
    if found is None:
        raise element.refused("a text of the form function(attribute) is expected")
    return attribute_name(found[2]), function_name(found[1])
