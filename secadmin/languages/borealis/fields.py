"""The schemas of a Borealis document."""

from __future__ import annotations

import re

from catalog.errors import InvalidInput
from catalog.schema import Attribute, Schema, Type, check_definition
from secadmin.languages.borealis.elements import attributes, no_children
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.borealis.tree import Element
from secadmin.languages.borealis.unused import check_children
from secadmin.languages.text import placed

TYPES = {
    **dict.fromkeys(("byte", "short", "int", "long"), Type.BIGINT),
    **dict.fromkeys(("single", "double"), Type.DOUBLE),
    "string": Type.STRING,
    "timestamp": Type.TIMESTAMP,
    "bool": Type.BOOLEAN,
}
# Diagrams of other systems have a size. Here it limits nothing.
_SIZE = re.compile(r"[0-9]+")


def read_schema(element: Element, notes: Notes) -> Schema:
    """The schema that a <schema> element declares. Raises InvalidInput."""
    fields = check_children(element, ("field",), notes)
    with placed(element.position):
        return check_definition(Schema(tuple(_field(field) for field in fields)))


def _field(element: Element) -> Attribute:
    values = attributes(element, "name", "type", optional=("size",))
    no_children(element)
    name, written = values["name"].text, values["type"]
    if "(" in written.text:
        raise InvalidInput(
            f"field {name[:40]!r} is an array, and diagrams have no arrays here; send one tuple "
            "for each value",
            written.place(),
        )
    kind = TYPES.get(written.text.lower())
    if kind is None:
        known = ", ".join(TYPES)
        raise InvalidInput(
            f"unknown type {written.text[:40]!r}; there are: {known}", written.place()
        )
    size = values.get("size")
    if size is not None and not _SIZE.fullmatch(size.text):
        raise InvalidInput("size is a number", size.place())
    return Attribute(name, kind)
