"""Delivery classes as the catalog stores them, and whether an output's results can be split."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.clearance import Clearance
from catalog.delivery import Delivery
from catalog.label import Label
from catalog.models import DeliveryClass, OutputInput, OutputRow
from catalog.placement import Placement
from catalog.plan import Emission, Plan, is_stateful
from catalog.stored_form import from_stored
from catalog.upserts import upsert_keys


def delivery_of(row: DeliveryClass) -> Delivery | None:
    """What the class takes. None if the row cannot be read: then the class takes nothing."""
    clearance = Label.from_wire(row.clearance)
    if clearance is None:
        return None
    ways = [Label.from_wire(each) for each in row.ways or ()]
    if any(way is None for way in ways):
        return None
    alone = tuple(Clearance(way.bits) for way in ways if way is not None)
    if row.beyond is None:
        return Delivery(Clearance(clearance.bits), row.weak, ways=alone)
    beyond = Label.from_wire(row.beyond)
    if beyond is None:
        return None
    return Delivery(Clearance(clearance.bits), row.weak, Clearance(beyond.bits))


def is_divisible(session: Session, output_id: int) -> bool:
    """Whether a difference class can bring what a subscription lacks.

    It cannot if classes do not share their results, or if results replace others.
    """
    return shares_results(session, output_id) and only_appends(session, output_id)


def shares_results(session: Session, output_id: int) -> bool:
    """Whether classes that take a result get the same result, whatever else they take.

    They do not if each class has results of its own (semantics `view` and `isolated`), or if its
    results come by single roles (`exact`).
    """
    row = session.get_one(OutputRow, output_id)
    if row.placement in (Placement.APART, Placement.ROLES):
        return False
    return not (Placement(row.placement).by_class and is_stateful(from_stored(Plan, row.plan)))


def only_appends(session: Session, output_id: int) -> bool:
    """Whether no result of the output replaces an earlier result.

    This is true if neither its plan nor the plan of any output below it gives updates or upserts.
    Those of one group belong together, so they must not be spread over several topics.
    """
    looked_at: set[int] = set()
    left = {output_id}
    while left:
        rows = session.scalars(select(OutputRow).where(OutputRow.object_id.in_(left)))
        if any(_replaces(from_stored(Plan, row.plan)) for row in rows):
            return False
        looked_at |= left
        read = select(OutputInput.relation_id).where(OutputInput.output_id.in_(left))
        left = set(session.scalars(read)) - looked_at
    return True


def _replaces(plan: Plan) -> bool:
    return plan.emission is Emission.UPDATES or bool(upsert_keys(plan))
