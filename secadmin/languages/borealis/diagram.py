"""`parse_borealis` makes one plan for each output from boxes and arcs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from catalog.analysis import MIXED, complete
from catalog.checked_plan import CheckedPlan
from catalog.errors import InvalidInput
from catalog.names import check_object_name
from catalog.plan import Emission, Source
from catalog.plan_check import MAX_NODES
from catalog.schema import Schema
from secadmin.languages.borealis.boxes import run_box
from secadmin.languages.borealis.document import Arc, Box, Document, read_document
from secadmin.languages.borealis.tree import parse_tree
from secadmin.languages.borealis.wiring import check_wiring, cycle
from secadmin.languages.building import MAX_PARTS, Built, build
from secadmin.languages.resolver import Resolver, look_up
from secadmin.languages.text import placed

# The limit for all outputs together, because each is checked and stored whole.
MAX_TOTAL_NODES = 10 * MAX_NODES


@dataclass(frozen=True, slots=True)
class Diagram:
    """The outputs of a document as pairs (name, plan), in the order of the document."""

    outputs: tuple[tuple[str, CheckedPlan], ...]


def parse_borealis(text: str, resolver: Resolver) -> Diagram:
    """The checked plans of a document in the XML of `grammar.md`.

    The resolver looks up every input.

    Raises:
        InvalidInput: Something is not in the format, or does not fit. It has line and column.
        UnknownRelation: The resolver does not find an input. It is an InvalidInput.
        PlatformError: The resolver raised it.
    """
    try:
        return _diagram(read_document(parse_tree(text)), resolver)
    except RecursionError:
        raise InvalidInput("an expression is nested too deeply") from None


def _diagram(document: Document, resolver: Resolver) -> Diagram:
    check_wiring(document)
    streams = {arc.stream: _input(arc, document, resolver) for arc in document.inputs}
    _run(document, streams)
    for arc in document.outputs:
        _check_output(arc, document, streams[arc.stream])
    _check_total([streams[arc.stream] for arc in document.outputs], document)
    return Diagram(
        tuple((arc.stream, _completed(arc, streams[arc.stream])) for arc in document.outputs)
    )


def _check_total(outputs: list[Built], document: Document) -> None:
    for total, most, what in (
        (sum(built.checked.nodes for built in outputs), MAX_TOTAL_NODES, "boxes"),
        (sum(built.parts for built in outputs), MAX_PARTS, "parts (attributes, constants, calls)"),
    ):
        if total > most:
            raise InvalidInput(
                f"the outputs have more than {most} {what} together, each counted with all that "
                "it needs; split the diagram",
                document.position,
            )


def _input(arc: Arc, document: Document, resolver: Resolver) -> Built:
    source = build(Source(look_up(resolver, arc.stream, arc.position)), (), arc.position)
    _check_schema(arc, document, source.schema)
    return source


def _check_output(arc: Arc, document: Document, built: Built) -> None:
    with placed(arc.position):
        check_object_name(arc.stream)
    _check_schema(arc, document, built.schema)


def _completed(arc: Arc, built: Built) -> CheckedPlan:
    with placed(arc.position):
        if len(built.emissions) > 1:
            raise InvalidInput(MIXED)
        return complete(built.checked, next(iter(built.emissions), Emission.CLOSED))


def _check_schema(arc: Arc, document: Document, real: Schema) -> None:
    if arc.schema is None:
        return
    declared = document.schemas.get(arc.schema)
    if declared is None:
        raise InvalidInput(f"there is no <schema name={arc.schema[:80]!r}>", arc.position)
    if [(a.name, a.type) for a in declared.attributes] != [
        (a.name, a.type) for a in real.attributes
    ]:
        raise InvalidInput(
            f"schema {arc.schema[:80]!r} differs from stream {arc.stream!r}, which is "
            + ", ".join(f"{a.name} {a.type}" for a in real.attributes),
            arc.position,
        )


def _run(document: Document, streams: dict[str, Built]) -> None:
    """Give each written stream its plan. A box runs when all its inputs have their plans."""
    waiting = {
        box.name: len({a.stream for a in box.inputs} - streams.keys()) for box in document.boxes
    }
    readers: dict[str, list[Box]] = {}
    for box in document.boxes:
        for stream in {arc.stream for arc in box.inputs}:
            readers.setdefault(stream, []).append(box)
    ready = deque(box for box in document.boxes if not waiting[box.name])
    while ready:
        box = ready.popleft()
        streams[box.outputs[0].stream] = run_box(box, [streams[a.stream] for a in box.inputs])
        for reader in readers.get(box.outputs[0].stream, ()):
            waiting[reader.name] -= 1
            if not waiting[reader.name]:
                ready.append(reader)
    left = [box for box in document.boxes if waiting[box.name]]
    if left:
        raise cycle(left)
