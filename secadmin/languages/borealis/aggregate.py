"""The aggregate box: functions over windows of event time, or of numbers of tuples."""

from __future__ import annotations

import re

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef
from catalog.plan import (
    WINDOW_START,
    Aggregate,
    Aggregation,
    Column,
    Emission,
    Project,
    Window,
    Windowed,
)
from catalog.plan_check import check_window
from catalog.schema import check_attribute_name
from secadmin.languages.borealis.clock import size_ms
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.event_time import check_event_time
from secadmin.languages.borealis.expression import Operands, operands_of, parsed
from secadmin.languages.borealis.flow import Flow, after
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.borealis.parameters import Parameter, Parameters
from secadmin.languages.borealis.tuple_windows import note_differences as note_tuples
from secadmin.languages.borealis.tuple_windows import tuple_windows
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import aggregate_call

_FUNCTION, _NAME = "aggregate-function", "aggregate-function-output-name"
# SQL writes count(*).
_COUNT = re.compile(r"\s*count\s*\(\s*\)\s*", re.IGNORECASE)
_ORDERS = ("FIELD", "TUPLENUM")
_UNUSED = {
    "timeout": "a window closes when event time has passed its end, however long that takes",
    "slack": "the lateness of the stream says how long a window waits for tuples that are late",
    "drop-mode": "no tuple is left out when there is much to do",
    "last-agg": "no tuple is left out when there is much to do",
}
_EMPTY, _ALIGNED = "drop-empty-outputs", "independent-window-alignment"


def aggregate(box: Box, source: Flow, notes: Notes) -> Flow:
    """Make the Aggregate of a box. Raises InvalidInput.

    With `order-by` = FIELD or TUPLENUM the results have the attributes that they have in Borealis.
    """
    parameters = box.parameters
    parameters.check(
        *("window-size-by", "window-size", "advance", "order-by", "order-on-field", "group-by"),
        *("emit", _EMPTY, _ALIGNED, *_UNUSED),
        series=(_FUNCTION, _NAME),
    )
    by_tuples = _counts_tuples(parameters.need("window-size-by"))
    keys = _keys(parameters.get("group-by"), source.built)
    operands = operands_of(source)
    if by_tuples:
        found = tuple(_aggregation(f, name, operands) for f, name in _functions(parameters))
        _refuse_updates(parameters)
        built = tuple_windows(parameters, source.built, keys, found)
        note_tuples(parameters, notes)
        _note_unused(parameters, notes, but="timeout")
        return after((source,), built, keeps_order=False)
    parameters.choice("emit", "UPDATES", required=False)
    order = _order(parameters, source.built)
    windows = Windowed(source.built.node, _window(parameters, source))
    windowed = build(windows, (source.built,), box.position)
    found = tuple(_aggregation(f, name, operands) for f, name in _functions(parameters))
    node = Aggregate(windowed.node, keys, found)
    emission = Emission.UPDATES if parameters.get("emit") is not None else Emission.CLOSED
    built = build(node, (windowed,), box.position, emission)
    if order in _ORDERS:
        built = _as_in_borealis(box, node, built, order)
    _note_differences(parameters, notes, in_borealis=order in _ORDERS)
    _note_unused(parameters, notes)
    return after((source,), built, keeps_order=False)


def _counts_tuples(parameter: Parameter) -> bool:
    written = parameter.text.upper()
    if written not in ("VALUES", "TUPLES"):
        raise InvalidInput("window-size-by is VALUES or TUPLES", parameter.place())
    return written == "TUPLES"


def _refuse_updates(parameters: Parameters) -> None:
    emit = parameters.get("emit")
    if emit is not None:
        raise InvalidInput(
            "emit goes with window-size-by VALUES; a window of tuples gives its result when it is "
            "full, so leave it out",
            emit.place(),
        )


def _order(parameters: Parameters, source: Built) -> str:
    """FIELD, TUPLENUM, or the event time, by which an author of the platform orders."""
    order, field = parameters.need("order-by"), parameters.get("order-on-field")
    written = order.text.upper()
    if written not in _ORDERS:
        if field is not None:
            raise InvalidInput("order-on-field goes with order-by FIELD", field.place())
        check_event_time(order, source)
        return order.text
    check_event_time(parameters.need("order-on-field"), source)
    return written


def _window(parameters: Parameters, source: Flow) -> Window:
    size, advance = parameters.need("window-size"), parameters.need("advance")
    window = Window(size_ms(size, source.clock), size_ms(advance, source.clock))
    try:
        check_window(window)
    except InvalidInput as error:
        fault = f"window-size {size.text} with advance {advance.text}: {error.detail}"
        raise InvalidInput(fault, size.place()) from None
    return window


def _keys(parameter: Parameter | None, source: Built) -> tuple[Column, ...]:
    if parameter is None or not parameter.text.strip():
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


def _functions(parameters: Parameters) -> list[tuple[Parameter, Parameter | None]]:
    """Each function and the parameter with its name. Raises InvalidInput for a gap."""
    functions = parameters.series(_FUNCTION)
    names = [parameters.get(f"{_NAME}.{index}") for index in range(len(functions))]
    for parameter in parameters.by_name.values():
        if parameter.name.startswith(f"{_NAME}.") and parameter not in names:
            raise InvalidInput(f"{parameter.name} names no aggregate-function", parameter.position)
    return list(zip(functions, names, strict=True))


def _aggregation(function: Parameter, name: Parameter | None, operands: Operands) -> Aggregation:
    # Borealis gives a function without a name this one.
    called = f"agg_{function.name.rpartition('.')[2]}"
    if name is not None:
        called = check_attribute_name(name.text, name.place())
    if _COUNT.fullmatch(function.text):
        return Aggregation(called, "count", None)
    tree, reader = parsed(function, operands, "another aggregate")
    found, _ = aggregate_call(tree, reader)
    return Aggregation(called, found.function, found.argument)


def _as_in_borealis(box: Box, node: Aggregate, built: Built, order: str) -> Built:
    """The results as in Borealis: the keys, the start of the window if FIELD, the functions."""
    names = [*(key.name for key in node.keys), *(each.name for each in node.aggregations)]
    columns = [Column(name, AttributeRef(name, box.position)) for name in names]
    if order == "FIELD":
        field = box.parameters.need("order-on-field")
        start = Column(field.text, AttributeRef(WINDOW_START, field.place()))
        columns.insert(len(node.keys), start)
    return build(Project(built.node, tuple(columns)), (built,), box.position)


def _note_differences(parameters: Parameters, notes: Notes, *, in_borealis: bool) -> None:
    """Note what Borealis does without these parameters. Raises InvalidInput if they ask for it."""
    for name, without in (
        (_EMPTY, "a window without tuples gives no result"),
        (_ALIGNED, "windows are aligned to 1970 UTC, and not to the first tuple"),
    ):
        parameters.choice(name, "0", "1", required=False)
        found = parameters.get(name)
        if found is not None and found.text == "0":
            raise InvalidInput(f"{name} is 1: {without}", found.place())
        if found is None and in_borealis:
            notes.add(f"{name} is always 1: {without}", parameters.position)


def _note_unused(parameters: Parameters, notes: Notes, *, but: str = "") -> None:
    for name, why in _UNUSED.items():
        found = None if name == but else parameters.get(name)
        if found is not None and not found.text.startswith("-") and found.text != "0":
            notes.add(f"{name} is not used: {why}", found.position)
