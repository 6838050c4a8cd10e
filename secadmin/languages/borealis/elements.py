"""Checks that an element of a document has the attributes and children of its format."""

from __future__ import annotations

from catalog.errors import InvalidInput
from secadmin.languages.borealis.tree import Element, Value


def attributes(
    element: Element, *required: str, optional: tuple[str, ...] = ()
) -> dict[str, Value]:
    """The attributes of an element. Raises InvalidInput if one is missing, empty or unknown."""
    for name, value in element.attributes.items():
        if name not in (*required, *optional):
            raise InvalidInput(f"<{element.tag}> has no attribute {name[:40]!r}", value.place())
    for name in required:
        if name not in element.attributes or not element.attributes[name].text:
            raise InvalidInput(f"<{element.tag}> needs an attribute {name!r}", element.position)
    return element.attributes


def no_children(element: Element) -> None:
    """Raise InvalidInput if an element that is always empty has children."""
    for child in element.children:
        raise InvalidInput(f"<{child.tag[:40]}> is not allowed in <{element.tag}>", child.position)
