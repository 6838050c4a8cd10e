"""The join box. Its two buffers say how far the event times of a pair may differ."""

from __future__ import annotations

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, conjuncts
from catalog.plan import Column, Join, Project
from catalog.schema import check_attribute_name
from secadmin.languages.borealis.clock import Clock, size_ms
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.event_time import check_event_time
from secadmin.languages.borealis.expression import Operands, operands_of_sides, read
from secadmin.languages.borealis.flow import Flow, after
from secadmin.languages.borealis.notes import Notes
from secadmin.languages.building import build
from secadmin.languages.join_sides import qualified, split_equal
from secadmin.languages.typed import known

_SIDES = ("left", "right")
_MILLISECOND_US = 1_000


def join(box: Box, left: Flow, right: Flow, notes: Notes) -> Flow:
    """Make the Join of a box, and the Project to its out-fields. Raises InvalidInput.

    A left tuple is kept for `left-buffer-size`: the right tuple may be later by that time. A right
    tuple is kept for `right-buffer-size`: the left tuple may be later by that time.
    """
    sides = dict(zip(_SIDES, (left, right), strict=True))
    box.parameters.check(
        "predicate",
        *(f"{s}-{what}" for s in _SIDES for what in ("buffer-size", "order-by", "order-on-field")),
        "timeout",
        series=("out-field", "out-field-name"),
    )
    kept = {side: _kept_ms(box, side, flow, notes) for side, flow in sides.items()}
    operands = operands_of_sides(sides)
    both = tuple(qualified(flow.built, side, box.position) for side, flow in sides.items())
    predicate = read(box.parameters.need("predicate"), operands, "a predicate")
    equal, rest = split_equal(conjuncts(predicate.expression), *both)
    node = Join(both[0].node, both[1].node, equal, -kept["right"], kept["left"], rest)
    joined = build(node, both, predicate.position)
    columns = _columns(box, operands)
    timeout = box.parameters.get("timeout")
    if timeout is not None and not timeout.text.startswith("-"):
        notes.add("timeout is not used: a tuple is kept by event time", timeout.position)
    built = build(Project(joined.node, columns), (joined,), box.position)
    return after((left, right), built, keeps_order=False)


def _kept_ms(box: Box, side: str, flow: Flow, notes: Notes) -> int:
    """How much later than a tuple of this side its partner may be (ms).

    In Borealis (order-by VALUES) a tuple leaves the buffer as soon as another one is later by the
    whole size. With times in whole numbers, its partner is later by at most one unit less.
    """
    in_borealis = _check_order(box, side, flow)
    length = size_ms(box.parameters.need(f"{side}-buffer-size"), flow.clock)
    clock = flow.clock
    if not in_borealis or clock == Clock():
        return length
    if clock is not None and clock.whole and clock.unit_us >= _MILLISECOND_US:
        return length - clock.unit_us // _MILLISECOND_US
    notes.add(
        "a partner that is later by exactly the buffer size is in time here, and too late in "
        "Borealis",
        box.position,
    )
    return length


def _check_order(box: Box, side: str, flow: Flow) -> bool:
    """Check that a side goes by event time. Say whether it is written as in Borealis."""
    order = box.parameters.get(f"{side}-order-by")
    field = box.parameters.get(f"{side}-order-on-field")
    written = order.text.upper() if order is not None else ""
    if order is not None and written == "TUPLES":
        raise InvalidInput(
            f"{side}-order-by TUPLES is not possible: a join here keeps tuples by event time, not "
            f"by number; write {side}-order-by VALUES, {side}-order-on-field, and "
            f"{side}-buffer-size as a time",
            order.place(),
        )
    if written == "VALUES":
        check_event_time(box.parameters.need(f"{side}-order-on-field"), flow.built)
        return True
    if field is not None:
        raise InvalidInput(f"{side}-order-on-field goes with order-by VALUES", field.place())
    if order is not None:
        check_event_time(order, flow.built)
    elif flow.built.event_time is None:
        arc = box.inputs[_SIDES.index(side)]
        raise InvalidInput(
            f"a join goes by event time, but {arc.stream!r} has none: "
            "keep the stream's event-time attribute under one name",
            arc.position,
        )
    return False


def _columns(box: Box, operands: Operands) -> tuple[Column, ...]:
    """The out-fields. Without any, the attributes of the left side and then of the right side."""
    if not any(name.startswith("out-field") for name in box.parameters.by_name):
        return _all_columns(box, operands)
    columns = []
    for field, name in box.parameters.pairs("out-field", "out-field-name"):
        value = read(field, operands, "an out-field")
        known(value)
        columns.append(Column(check_attribute_name(name.text, name.place()), value.expression))
    return tuple(columns)


def _all_columns(box: Box, operands: Operands) -> tuple[Column, ...]:
    fields = [field for table in operands.scope.tables for field in table.fields]
    names = [field.name for field in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(
            f"both inputs have {twice!r}; name the results with out-field.N and out-field-name.N",
            box.position,
        )
    return tuple(Column(f.name, AttributeRef(f.inner, box.position)) for f in fields)
