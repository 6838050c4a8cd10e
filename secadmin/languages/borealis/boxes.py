"""The kinds of boxes: the inputs and parameters of each, and its plan node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catalog.errors import InvalidInput
from catalog.plan import Column, Filter, Project, Union
from catalog.schema import check_attribute_name
from secadmin.languages.borealis.aggregate import aggregate
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.expression import read
from secadmin.languages.borealis.join import join
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.typed import known

Inputs = Sequence[Built]


def run_box(box: Box, inputs: Inputs) -> Built:
    """The plan of the stream that a box writes. Raises InvalidInput."""
    kind = _BOXES.get(box.type)
    if kind is None:
        known_types = ", ".join(_BOXES)
        raise InvalidInput(
            f"unknown box type {box.type[:40]!r}; there are: {known_types}", box.position
        )
    count, make = kind
    if len(box.inputs) != count and not (count > 1 and box.type == "union" and inputs[1:]):
        needed = "two or more inputs" if box.type == "union" else f"{count} input(s)"
        raise InvalidInput(f"a box of type {box.type} has {needed}", box.position)
    if len(box.outputs) != 1:
        raise InvalidInput("a box has one output", box.position)
    return make(box, inputs)


def _filter(box: Box, inputs: Inputs) -> Built:
    box.parameters.check("expression.0")
    source = inputs[0]
    scope = Scope((Table.of("", source.schema),))
    condition = read(box.parameters.need("expression.0"), scope, "a filter")
    return build(Filter(source.node, condition.expression), (source,), condition.position)


def _map(box: Box, inputs: Inputs) -> Built:
    box.parameters.check(series=("expression", "output-field-name"))
    source = inputs[0]
    scope = Scope((Table.of("", source.schema),))
    columns = []
    for expression, name in box.parameters.pairs("expression", "output-field-name"):
        value = read(expression, scope, "a map")
        known(value)
        columns.append(Column(check_attribute_name(name.text, name.place()), value.expression))
    return build(Project(source.node, tuple(columns)), (source,), box.position)


def _union(box: Box, inputs: Inputs) -> Built:
    box.parameters.check()
    return build(Union(tuple(each.node for each in inputs)), tuple(inputs), box.position)


_BOXES: dict[str, tuple[int, Callable[[Box, Inputs], Built]]] = {
    "filter": (1, _filter),
    "map": (1, _map),
    "union": (2, _union),
    "aggregate": (1, aggregate),
    "join": (2, join),
}
