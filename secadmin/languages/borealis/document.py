"""A Borealis document: its inputs, outputs, schemas and boxes, as the text has them."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.errors import InvalidInput, Position
from catalog.schema import Schema
from secadmin.languages.borealis.elements import attributes, no_children
from secadmin.languages.borealis.fields import read_schema
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.borealis.parameters import Parameter, Parameters
from secadmin.languages.borealis.tree import Element
from secadmin.languages.borealis.unused import UNUSED_ATTRIBUTES, check_children, note_attributes

_PARTS = ("input", "output", "schema", "box")
_UNUSED = tuple(UNUSED_ATTRIBUTES)


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
    """The whole document, in the order of its text. The queries in it are one network."""

    inputs: tuple[Arc, ...]
    outputs: tuple[Arc, ...]
    schemas: dict[str, Schema]
    boxes: tuple[Box, ...]
    position: Position


@dataclass
class _Parts:
    """The parts that were found so far, and the notes."""

    notes: Notes
    inputs: list[Arc] = field(default_factory=list)
    outputs: list[Arc] = field(default_factory=list)
    schemas: dict[str, Schema] = field(default_factory=dict)
    boxes: dict[str, Box] = field(default_factory=dict)


def read_document(root: Element, notes: Notes) -> Document:
    """Read the document from its root element. Raises InvalidInput for a wrong part."""
    if root.tag == "deploy":
        raise InvalidInput(
            "<deploy> says where a network runs, and the platform places queries itself; give the "
            "file with the <borealis> element",
            root.position,
        )
    if root.tag != "borealis":
        raise InvalidInput("the document is a <borealis> element", root.position)
    attributes(root, optional=_UNUSED)
    note_attributes(root, notes)
    parts = _Parts(notes)
    for element in check_children(root, (*_PARTS, "query"), notes):
        if element.tag != "query":
            _part(element, parts)
            continue
        attributes(element, "name", optional=_UNUSED)
        note_attributes(element, notes)
        for inner in check_children(element, _PARTS, notes):
            _part(inner, parts)
    return Document(
        tuple(parts.inputs),
        tuple(parts.outputs),
        parts.schemas,
        tuple(parts.boxes.values()),
        root.position,
    )


def _part(element: Element, parts: _Parts) -> None:
    match element.tag:
        case "input":
            parts.inputs.append(_arc(element, parts.notes, "schema", optional=("node",)))
        case "output":
            parts.outputs.append(_arc(element, parts.notes, optional=("schema", "node")))
        case "schema":
            name = attributes(element, "name")["name"].text
            if name in parts.schemas:
                raise InvalidInput(f"schema {name[:80]!r} is there twice", element.position)
            parts.schemas[name] = read_schema(element, parts.notes)
        case _:
            box = _box(element, parts.notes)
            if box.name in parts.boxes:
                raise InvalidInput(f"two boxes are called {box.name[:80]!r}", box.position)
            parts.boxes[box.name] = box


def _box(element: Element, notes: Notes) -> Box:
    values = attributes(element, "name", "type", optional=_UNUSED)
    note_attributes(element, notes)
    parts = check_children(element, ("in", "input", "out", "output", "parameter"), notes)
    return Box(
        values["name"].text,
        values["type"].text,
        tuple(_read(e, notes) for e in parts if e.tag in ("in", "input")),
        tuple(_arc(e, notes) for e in parts if e.tag in ("out", "output")),
        Parameters.of([_parameter(e) for e in parts if e.tag == "parameter"], element.position),
        element.position,
    )


def _read(element: Element, notes: Notes) -> Arc:
    view = element.attributes.get("connection_point_view")
    if view is not None:
        raise InvalidInput(
            "a box reads a stream from now on, because no history of it is kept; leave "
            "connection_point_view out",
            view.place(),
        )
    return _arc(element, notes, optional=_UNUSED)


def _parameter(element: Element) -> Parameter:
    values = attributes(element, "name", "value")
    no_children(element)
    return Parameter(values["name"].text, values["value"], element.position)


def _arc(element: Element, notes: Notes, *required: str, optional: tuple[str, ...] = ()) -> Arc:
    values = attributes(element, "stream", *required, optional=optional)
    note_attributes(element, notes)
    no_children(element)
    schema = values.get("schema")
    return Arc(values["stream"].text, element.position, schema.text if schema else None)
