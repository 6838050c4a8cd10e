"""`parse_borealis` makes one plan for each output from boxes and arcs."""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from dataclasses import dataclass

from catalog.analysis import MIXED, complete
from catalog.checked_plan import CheckedPlan
from catalog.errors import InvalidInput
from catalog.names import check_object_name
from catalog.plan import Emission, Source
from catalog.plan_check import MAX_NODES
from catalog.schema import Schema, Type
from secadmin.languages.borealis.boxes import run_box
from secadmin.languages.borealis.clock import (
    NUMBERS,
    Clock,
    DiagramResolver,
    number_clock,
)
from secadmin.languages.borealis.document import Arc, Box, Document, read_document
from secadmin.languages.borealis.flow import Flow
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.borealis.tree import parse_tree
from secadmin.languages.borealis.wiring import check_wiring, cycle
from secadmin.languages.building import MAX_PARTS, Built, build
from secadmin.languages.resolver import look_up
from secadmin.languages.text import placed

# The limit for all outputs together, because each is checked and stored whole.
MAX_TOTAL_NODES = 10 * MAX_NODES
# The limit for the boxes alone, whether or not an output needs them. It bounds the time to read.
MAX_OWN_PARTS = 4 * MAX_PARTS


@dataclass(frozen=True, slots=True)
class Diagram:
    """The outputs of a document as pairs (name, plan), in the order of the document.

    `notes` say in words what the document has and the platform does not use.
    """

    outputs: tuple[tuple[str, CheckedPlan], ...]
    notes: tuple[str, ...] = ()


def parse_borealis(text: str, resolver: DiagramResolver) -> Diagram:
    """The checked plans of a document in the XML of `docs/borealis.md`.

    The resolver looks up every input.

    Raises:
        InvalidInput: Something is not in the format, or does not fit. It has line and column.
        UnknownRelation: The resolver does not find an input. It is an InvalidInput.
        PlatformError: The resolver raised it.
    """
    notes = Notes()
    try:
        return _diagram(read_document(parse_tree(text), notes), resolver, notes)
    except RecursionError:
        raise InvalidInput("an expression is nested too deeply") from None


def _diagram(document: Document, resolver: DiagramResolver, notes: Notes) -> Diagram:
    check_wiring(document)
    streams = {arc.stream: _input(arc, document, resolver) for arc in document.inputs}
    _run(document, streams, notes)
    for arc in document.outputs:
        _check_output(arc, document, streams[arc.stream], notes)
    _check_total([streams[arc.stream].built for arc in document.outputs], document)
    outputs = tuple(
        (arc.stream, _completed(arc, streams[arc.stream].built)) for arc in document.outputs
    )
    return Diagram(outputs, notes.texts())


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


def _input(arc: Arc, document: Document, resolver: DiagramResolver) -> Flow:
    source = build(Source(look_up(resolver, arc.stream, arc.position)), (), arc.position)
    declared = _declared(arc, document)
    clock: Clock | None = Clock()
    time = source.event_time
    field = declared.get(time) if declared is not None and time is not None else None
    if field is not None and field.type in NUMBERS:
        clock = number_clock(field.type, resolver.time_format(arc.stream))
        if clock is None:
            raise InvalidInput(
                f"the records of {arc.stream!r} have {time!r} as text in ISO 8601, so its type is "
                "timestamp",
                arc.position,
            )
    _check_schema(arc, declared, source.schema, {time} if clock and clock.number else set())
    return Flow(source, clock)


def _check_output(arc: Arc, document: Document, flow: Flow, notes: Notes) -> None:
    with placed(arc.position):
        check_object_name(arc.stream)
    if flow.sorted_by is not None:
        raise InvalidInput(
            f"output {arc.stream!r} has the order of box {flow.sorted_by[:80]!r} (bsort), but "
            "results are delivered as they come; leave the box out, and sort what you receive",
            arc.position,
        )
    times = set()
    if flow.clock is not None and flow.clock.number:
        times = {a.name for a in flow.built.schema.attributes if a.type is Type.TIMESTAMP}
    declared = _declared(arc, document)
    _check_schema(arc, declared, flow.built.schema, times)
    for name in sorted(times):
        field = declared.get(name) if declared is not None else None
        if field is not None and field.type in NUMBERS:
            notes.add(
                f"{name} of output {arc.stream!r} is delivered as a time in ISO 8601, not as a "
                "number",
                arc.position,
            )


def _completed(arc: Arc, built: Built) -> CheckedPlan:
    with placed(arc.position):
        if len(built.emissions) > 1:
            raise InvalidInput(MIXED)
        return complete(built.checked, next(iter(built.emissions), Emission.CLOSED))


def _declared(arc: Arc, document: Document) -> Schema | None:
    """The schema that an arc names, or None if it names none. Raises InvalidInput."""
    if arc.schema is None:
        return None
    declared = document.schemas.get(arc.schema)
    if declared is None:
        raise InvalidInput(f"there is no <schema name={arc.schema[:80]!r}>", arc.position)
    return declared


def _check_schema(
    arc: Arc, declared: Schema | None, real: Schema, counted: Set[str | None]
) -> None:
    """Raise InvalidInput if a declared schema differs. Times that are `counted` may be numbers."""
    if declared is None:
        return
    same = len(declared.attributes) == len(real.attributes) and all(
        mine.name == other.name
        and (mine.type is other.type or (other.name in counted and mine.type in NUMBERS))
        for mine, other in zip(declared.attributes, real.attributes, strict=True)
    )
    if not same:
        raise InvalidInput(
            f"schema {(arc.schema or '')[:80]!r} differs from stream {arc.stream!r}, which is "
            + ", ".join(f"{a.name} {a.type}" for a in real.attributes),
            arc.position,
        )


def _parts(flow: Flow) -> int:
    return flow.built.parts


def _run(document: Document, streams: dict[str, Flow], notes: Notes) -> None:
    """Give each written stream its flow. A box runs when all its inputs have their flows."""
    waiting = {
        box.name: len({a.stream for a in box.inputs} - streams.keys()) for box in document.boxes
    }
    readers: dict[str, list[Box]] = {}
    for box in document.boxes:
        for stream in {arc.stream for arc in box.inputs}:
            readers.setdefault(stream, []).append(box)
    ready = deque(box for box in document.boxes if not waiting[box.name])
    parts = 0
    while ready:
        box = ready.popleft()
        inputs = [streams[a.stream] for a in box.inputs]
        flows = run_box(box, inputs, notes)
        parts += sum(map(_parts, flows)) - len(flows) * sum(map(_parts, inputs))
        if parts > MAX_OWN_PARTS:
            raise InvalidInput(
                f"the boxes have more than {MAX_OWN_PARTS} parts (attributes, constants, calls) "
                "together; split the diagram",
                box.position,
            )
        for arc, flow in zip(box.outputs, flows, strict=True):
            streams[arc.stream] = flow
            for reader in readers.get(arc.stream, ()):
                waiting[reader.name] -= 1
                if not waiting[reader.name]:
                    ready.append(reader)
    left = [box for box in document.boxes if waiting[box.name]]
    if left:
        raise cycle(left)
