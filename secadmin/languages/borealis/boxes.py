"""The kinds of boxes: the inputs and parameters of each, and its plan nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catalog.errors import InvalidInput
from catalog.plan import Column, Project, Union
from catalog.schema import check_attribute_name
from secadmin.languages.borealis.aggregate import aggregate
from secadmin.languages.borealis.divisions import note_divisions
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.expression import operands_of, read
from secadmin.languages.borealis.flow import Flow, after
from secadmin.languages.borealis.join import join
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.borealis.other_boxes import REFUSED
from secadmin.languages.borealis.passing import bsort, delay
from secadmin.languages.borealis.ports import filter_ports
from secadmin.languages.building import build
from secadmin.languages.typed import known

Inputs = Sequence[Flow]
_MANY = 0


def run_box(box: Box, inputs: Inputs, notes: Notes) -> tuple[Flow, ...]:
    """The flow of each output of a box. Raises InvalidInput, which names the box."""
    try:
        flows = _run(box, inputs, notes)
    except InvalidInput as error:
        detail = error.detail.removeprefix(f"{error.position}: ")
        raise InvalidInput(f"box {box.name[:80]!r}: {detail}", error.position) from None
    for flow in flows:
        if all(flow.built is not each.built for each in inputs):
            note_divisions(box, flow.built.checked, notes)
    return flows


def _run(box: Box, inputs: Inputs, notes: Notes) -> tuple[Flow, ...]:
    kind = _BOXES.get(box.type)
    if kind is None:
        raise InvalidInput(_unknown(box.type), box.position)
    count, make = kind
    if count != _MANY and len(box.inputs) != count:
        raise InvalidInput(f"a box of type {box.type} has {count} input(s)", box.position)
    if len(box.outputs) != 1 and box.type != "filter":
        raise InvalidInput(f"a box of type {box.type} has one output", box.position)
    return make(box, inputs, notes)


def _unknown(kind: str) -> str:
    if kind in REFUSED:
        return f"a box of type {kind} is not possible: {REFUSED[kind]}"
    return f"unknown box type {kind[:40]!r}; there are: {', '.join(_BOXES)}"


def _map(box: Box, inputs: Inputs, _notes: Notes) -> tuple[Flow, ...]:
    box.parameters.check(series=("expression", "output-field-name"))
    source = inputs[0]
    operands = operands_of(source)
    columns = []
    for expression, name in box.parameters.pairs("expression", "output-field-name"):
        value = read(expression, operands, "a map")
        known(value)
        columns.append(Column(check_attribute_name(name.text, name.place()), value.expression))
    node = Project(source.built.node, tuple(columns))
    return (after(inputs, build(node, (source.built,), box.position), keeps_order=True),)


def _union(box: Box, inputs: Inputs, _notes: Notes) -> tuple[Flow, ...]:
    box.parameters.check()
    if len(inputs) == 1:
        return (inputs[0],)
    built = tuple(each.built for each in inputs)
    node = Union(tuple(each.node for each in built))
    return (after(inputs, build(node, built, box.position), keeps_order=True),)


_BOXES: dict[str, tuple[int, Callable[[Box, Inputs, Notes], tuple[Flow, ...]]]] = {
    "filter": (1, lambda box, inputs, _notes: filter_ports(box, inputs[0])),
    "map": (1, _map),
    "union": (_MANY, _union),
    "aggregate": (1, lambda box, inputs, notes: (aggregate(box, inputs[0], notes),)),
    "join": (2, lambda box, inputs, notes: (join(box, inputs[0], inputs[1], notes),)),
    "bsort": (1, lambda box, inputs, notes: (bsort(box, inputs[0], notes),)),
    "delay": (1, lambda box, inputs, notes: (delay(box, inputs[0], notes),)),
}
KINDS = frozenset(_BOXES)
