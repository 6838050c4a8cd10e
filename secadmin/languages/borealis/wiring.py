"""Checks that the arcs of a diagram connect.

Each stream has one writer. Of each box, something reads at least one output.
"""

from __future__ import annotations

from catalog.errors import InvalidInput
from catalog.plan_check import MAX_NODES
from secadmin.languages.borealis.document import Arc, Box, Document


def check_wiring(document: Document) -> None:
    """Raise InvalidInput if a stream has no writer, two writers or no reader."""
    if len(document.boxes) > MAX_NODES:
        raise InvalidInput(f"a diagram has at most {MAX_NODES} boxes", document.position)
    for box in document.boxes:
        if not box.inputs or not box.outputs:
            raise InvalidInput(f"box {box.name!r} needs inputs and outputs", box.position)
    if not document.outputs:
        raise InvalidInput("the diagram has no <output>", document.position)
    written = _written(document)
    _check_once(document.outputs, "output")
    for box in document.boxes:
        for arc in box.inputs:
            if arc.stream not in written:
                raise InvalidInput(
                    f"box {box.name!r} reads {arc.stream!r}, which is not an input and which no "
                    "box writes",
                    arc.position,
                )
    inputs = {arc.stream for arc in document.inputs}
    for arc in document.outputs:
        if arc.stream not in written or arc.stream in inputs:
            raise InvalidInput(f"no box writes the output {arc.stream!r}", arc.position)
    _check_used(document)


def cycle(boxes: list[Box]) -> InvalidInput:
    """The error for boxes that wait for each other. It names the boxes of one cycle."""
    writers = {arc.stream: box for box in boxes for arc in box.outputs}
    path: list[Box] = []
    box = boxes[0]
    while box not in path:
        path.append(box)
        box = next(writers[arc.stream] for arc in box.inputs if arc.stream in writers)
    # Each box was found from a box that reads it. So the tuples flow in the reversed order.
    names = [each.name for each in (box, *reversed(path[path.index(box) :]))]
    return InvalidInput(f"the diagram has a cycle: {' -> '.join(names)}", box.position)


def _written(document: Document) -> set[str]:
    _check_once(document.inputs, "input")
    written = {arc.stream for arc in document.inputs}
    for arc in (arc for box in document.boxes for arc in box.outputs):
        if arc.stream in written:
            raise InvalidInput(f"stream {arc.stream!r} is written twice", arc.position)
        written.add(arc.stream)
    return written


def _check_once(arcs: tuple[Arc, ...], what: str) -> None:
    seen: set[str] = set()
    for arc in arcs:
        if arc.stream in seen:
            raise InvalidInput(f"{what} {arc.stream!r} is there twice", arc.position)
        seen.add(arc.stream)


def _check_used(document: Document) -> None:
    used = {arc.stream for box in document.boxes for arc in box.inputs}
    for arc in document.inputs:
        if arc.stream not in used:
            raise InvalidInput(f"no box reads the input {arc.stream!r}", arc.position)
    used |= {arc.stream for arc in document.outputs}
    for box in document.boxes:
        if not any(arc.stream in used for arc in box.outputs):
            raise InvalidInput(
                f"nothing reads what box {box.name!r} writes; declare it as <output>", box.position
            )
