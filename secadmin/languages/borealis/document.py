"""A Borealis document: its inputs, outputs, schemas and boxes, as the text has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.errors import InvalidInput, Position
from catalog.schema import Attribute, Schema, Type, check_definition
from secadmin.languages.borealis.parameters import Parameter, Parameters
from secadmin.languages.borealis.tree import Element, Value
from secadmin.languages.text import placed

_TYPES = {
    "int": Type.BIGINT,
    "long": Type.BIGINT,
    "single": Type.DOUBLE,
    "double": Type.DOUBLE,
    "string": Type.STRING,
    "timestamp": Type.TIMESTAMP,
    "bool": Type.BOOLEAN,
}
# Diagrams of other systems have a size. Here it limits nothing.
_SIZE = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Arc:
    """A place where something reads or writes a stream, with the name of the stream."""

    stream: str
    position: Position
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """An operator with its arcs and parameters."""

    name: str
    type: str
    inputs: tuple[Arc, ...]
    outputs: tuple[Arc, ...]
    parameters: Parameters
    position: Position


@dataclass(frozen=True, slots=True)
class Document:
    """The whole document, in the order of its text."""

    inputs: tuple[Arc, ...]
    outputs: tuple[Arc, ...]
    schemas: dict[str, Schema]
    boxes: tuple[Box, ...]
    position: Position


def read_document(root: Element) -> Document:
    """Read the document from its root element. Raises InvalidInput for a wrong part."""
    if root.tag != "borealis":
        raise InvalidInput("the document is a <borealis> element", root.position)
    _attributes(root)
    parts = _children(root, "input", "output", "schema", "query")
    schemas: dict[str, Schema] = {}
    for element in parts["schema"]:
        name = _attributes(element, "name")["name"].text
        if name in schemas:
            raise InvalidInput(f"schema {name[:80]!r} is there twice", element.position)
        schemas[name] = _schema(element)
    boxes: list[Box] = []
    for query in parts["query"]:
        _attributes(query, "name")
        boxes += [_box(element) for element in _children(query, "box")["box"]]
    _check_unique(boxes)
    return Document(
        tuple(_arc(element, "schema") for element in parts["input"]),
        tuple(_arc(element, optional="schema") for element in parts["output"]),
        schemas,
        tuple(boxes),
        root.position,
    )


def _schema(element: Element) -> Schema:
    fields = _children(element, "field")["field"]
    with placed(element.position):
        return check_definition(Schema(tuple(_field(field) for field in fields)))


def _field(element: Element) -> Attribute:
    values = _attributes(element, "name", "type", optional="size")
    _children(element)
    kind = _TYPES.get(values["type"].text)
    if kind is None:
        known = ", ".join(_TYPES)
        raise InvalidInput(
            f"unknown type {values['type'].text[:40]!r}; there are: {known}",
            values["type"].place(),
        )
    size = values.get("size")
    if size is not None and (kind is not Type.STRING or not _SIZE.fullmatch(size.text)):
        raise InvalidInput("size is a number, and only strings have it", size.place())
    return Attribute(values["name"].text, kind)


def _box(element: Element) -> Box:
    values = _attributes(element, "name", "type")
    parts = _children(element, "in", "input", "out", "output", "parameter")
    return Box(
        values["name"].text,
        values["type"].text,
        tuple(_arc(e) for e in element.children if e.tag in ("in", "input")),
        tuple(_arc(e) for e in element.children if e.tag in ("out", "output")),
        Parameters.of([_parameter(e) for e in parts["parameter"]], element.position),
        element.position,
    )


def _parameter(element: Element) -> Parameter:
    values = _attributes(element, "name", "value")
    _children(element)
    return Parameter(values["name"].text, values["value"], element.position)


def _arc(element: Element, *required: str, optional: str | None = None) -> Arc:
    values = _attributes(element, "stream", *required, optional=optional)
    _children(element)
    schema = values.get("schema")
    return Arc(values["stream"].text, element.position, schema.text if schema else None)


def _attributes(element: Element, *required: str, optional: str | None = None) -> dict[str, Value]:
    for name, value in element.attributes.items():
        if name not in (*required, optional):
            raise InvalidInput(f"<{element.tag}> has no attribute {name[:40]!r}", value.place())
    for name in required:
        if name not in element.attributes or not element.attributes[name].text:
            raise InvalidInput(f"<{element.tag}> needs an attribute {name!r}", element.position)
    return element.attributes


def _children(element: Element, *allowed: str) -> dict[str, list[Element]]:
    found: dict[str, list[Element]] = {tag: [] for tag in allowed}
    for child in element.children:
        if child.tag not in found:
            raise InvalidInput(
                f"<{child.tag[:40]}> is not allowed in <{element.tag}>", child.position
            )
        found[child.tag].append(child)
    return found


def _check_unique(boxes: list[Box]) -> None:
    seen: set[str] = set()
    for box in boxes:
        if box.name in seen:
            raise InvalidInput(f"two boxes are called {box.name[:80]!r}", box.position)
        seen.add(box.name)
