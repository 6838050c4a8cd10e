"""Outputs: showing them, and the semantics of their delivery."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from catalog.errors import Conflict
from catalog.models import DeliveryClass, Object, OutputRow
from catalog.permission import ObjectKind, Permission
from catalog.placement import Placement
from catalog.relation import Relation
from catalog.stored_form import from_stored
from secadmin.control.platform import Platform
from secadmin.control.settlement import of_objects
from secadmin.control.work import Caller, Work, reading, working


@dataclass(frozen=True, slots=True)
class OutputView:
    """An output as a caller sees it. `query` is None if the caller may not view the query.

    `execution` is the id of the output's execution. `semantics` is strong, weak, view,
    isolated or exact.
    """

    execution: int
    query: str | None
    relation: Relation
    weak: bool
    retention_ms: int
    semantics: str


def show_output(platform: Platform, caller: Caller, name: str) -> OutputView:
    """An output's attributes and semantics, for a caller that may view the output."""
    with reading(platform, caller, "show output", f"output {name}") as view:
        obj = view.find(ObjectKind.OUTPUT, name)
        row = view.session.get_one(OutputRow, obj.id)
        query = view.session.get_one(Object, row.query_id)
        name_of_query = query.name if view.may_view(query) else None
        return OutputView(
            *(obj.id, name_of_query, from_stored(Relation, row.relation)),
            *(row.weak, row.retention_ms, _semantics(row)),
        )


def _semantics(row: OutputRow) -> str:
    return "weak" if row.weak else Placement(row.placement).semantics


def set_weak(platform: Platform, caller: Caller, name: str, weak: bool) -> None:
    """Turn weak semantics (004 §3.2) on or off for one output. Needs CHANGE SYSTEM.

    The content of a class never changes. So all classes of the output are closed and fenced, and
    every subscription moves to a new class.
    """
    with working(platform, caller, "set semantics", f"output {name}") as work:
        obj = work.find(ObjectKind.OUTPUT, name)
        work.require_system(Permission.CHANGE_SYSTEM)
        row = work.session.get_one(OutputRow, obj.id)
        turn(platform, work, row, weak)


def turn(platform: Platform, work: Work, output: OutputRow, weak: bool) -> None:
    """Turn weak semantics of the output on or off, without a check of rights.

    Raises Conflict for an output with other semantics than `strong`.
    """
    placement = Placement(output.placement)
    if weak and placement is not Placement.SINK:
        raise Conflict(
            f"the output has semantics {placement.semantics}, where no result has parts that a "
            "subscriber may not see; weak delivery goes with strong semantics"
        )
    work.detail["weak"] = weak
    if output.weak != weak:
        output.weak = weak
        own = select(DeliveryClass).where(DeliveryClass.output_id == output.object_id)
        for delivery_class in work.session.scalars(own):
            delivery_class.closed_at = delivery_class.closed_at or platform.clock()
        work.session.flush()
        work.change.bump_generation()
    work.settlement.settle(of_objects(output.object_id))
