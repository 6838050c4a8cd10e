"""The join box. Its two buffers say how far the event times of a pair may differ."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.errors import InvalidInput
from catalog.expression import conjuncts
from catalog.plan import Column, Join, Project
from catalog.schema import check_attribute_name
from secadmin.languages.borealis.aggregate import check_order
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.expression import read
from secadmin.languages.borealis.parameters import Parameters
from secadmin.languages.building import Built, build
from secadmin.languages.duration import short_ms
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.join_sides import qualified, split_equal
from secadmin.languages.typed import known

_SIDES = ("left", "right")


def join(box: Box, inputs: Sequence[Built]) -> Built:
    """Make the Join of a box, and the Project to its out-fields. Raises InvalidInput.

    A left tuple is kept for `left-buffer-size`: the right tuple may be later by that time. A right
    tuple is kept for `right-buffer-size`: the left tuple may be later by that time.
    """
    parameters = box.parameters
    parameters.check(
        "predicate",
        *(f"{side}-{what}" for side in _SIDES for what in ("buffer-size", "order-by")),
        series=("out-field", "out-field-name"),
    )
    _check_order(box, inputs)
    scope = Scope(
        tuple(
            Table.of(side, each.schema, prefix=f"{side}.")
            for side, each in zip(_SIDES, inputs, strict=True)
        )
    )
    left, right = (
        qualified(each, side, box.position) for side, each in zip(_SIDES, inputs, strict=True)
    )
    predicate = read(parameters.need("predicate"), scope, "a predicate")
    equal, rest = split_equal(conjuncts(predicate.expression), left, right)
    upper, lower = (_buffer(parameters, side) for side in _SIDES)
    node = Join(left.node, right.node, equal, -lower, upper, rest)
    joined = build(node, (left, right), predicate.position)
    columns = _columns(parameters, scope)
    return build(Project(joined.node, columns), (joined,), box.position)


def _check_order(box: Box, inputs: Sequence[Built]) -> None:
    for side, each, arc in zip(_SIDES, inputs, box.inputs, strict=True):
        order = box.parameters.get(f"{side}-order-by")
        if order is not None:
            check_order(order, each)
        elif each.event_time is None:
            raise InvalidInput(
                f"a join goes by event time, but {arc.stream!r} has none: "
                "keep the stream's event-time attribute under one name",
                arc.position,
            )


def _buffer(parameters: Parameters, side: str) -> int:
    parameter = parameters.need(f"{side}-buffer-size")
    return short_ms(parameter.text, parameter.place())


def _columns(parameters: Parameters, scope: Scope) -> tuple[Column, ...]:
    columns = []
    for field, name in parameters.pairs("out-field", "out-field-name"):
        value = read(field, scope, "an out-field")
        known(value)
        columns.append(Column(check_attribute_name(name.text, name.place()), value.expression))
    return tuple(columns)
