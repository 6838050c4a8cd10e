"""The aggregate box: functions over windows of event time."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef
from catalog.plan import Aggregate, Aggregation, Column, Emission, Window, Windowed
from catalog.plan_check import check_window
from catalog.schema import check_attribute_name
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.expression import parsed
from secadmin.languages.borealis.parameters import Parameter, Parameters
from secadmin.languages.building import Built, build
from secadmin.languages.duration import short_ms
from secadmin.languages.expressions.aggregates import aggregate_call
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.text import placed

_FUNCTION, _NAME = "aggregate-function", "aggregate-function-output-name"


def aggregate(box: Box, inputs: Sequence[Built]) -> Built:
    """Make the Aggregate of a box. Raises InvalidInput."""
    parameters = box.parameters
    parameters.check(
        *("window-size-by", "window-size", "advance", "order-by", "group-by", "emit"),
        series=(_FUNCTION, _NAME),
    )
    source = inputs[0]
    parameters.choice("window-size-by", "VALUES")
    parameters.choice("emit", "UPDATES", required=False)
    check_order(parameters.need("order-by"), source)
    windows = build(Windowed(source.node, _window(parameters)), (source,), box.position)
    node = Aggregate(
        windows.node,
        _keys(parameters.get("group-by"), source),
        tuple(_aggregation(f, name, source) for f, name in parameters.pairs(_FUNCTION, _NAME)),
    )
    emission = Emission.UPDATES if parameters.get("emit") is not None else Emission.CLOSED
    return build(node, (windows,), box.position, emission)


def check_order(parameter: Parameter, source: Built) -> None:
    """Raise InvalidInput unless the parameter names the attribute with the event time."""
    time = source.event_time
    if time is None:
        raise InvalidInput(
            "windows go by event time, but this input has none: "
            "keep the stream's event-time attribute under one name",
            parameter.place(),
        )
    if parameter.text != time:
        raise InvalidInput(f"windows go by the event time, which is {time}", parameter.place())


def _window(parameters: Parameters) -> Window:
    size, advance = parameters.need("window-size"), parameters.need("advance")
    window = Window(short_ms(size.text, size.place()), short_ms(advance.text, advance.place()))
    with placed(size.place()):
        check_window(window)
    return window


def _keys(parameter: Parameter | None, source: Built) -> tuple[Column, ...]:
    if parameter is None:
        return ()
    keys = []
    offset = 0
    for part in parameter.text.split(","):
        name = part.strip()
        place = parameter.value.place(offset + len(part) - len(part.lstrip()))
        if source.schema.get(name) is None:
            known = ", ".join(source.schema.names)
            raise InvalidInput(f"unknown attribute {name[:80]!r}; there are: {known}", place)
        keys.append(Column(name, AttributeRef(name, place)))
        offset += len(part) + 1
    return tuple(keys)


def _aggregation(function: Parameter, name: Parameter, source: Built) -> Aggregation:
    scope = Scope((Table.of("", source.schema),))
    tree, reader = parsed(function, scope, "another aggregate")
    found, _ = aggregate_call(tree, reader)
    called = check_attribute_name(name.text, name.place())
    return Aggregation(called, found.function, found.argument)
