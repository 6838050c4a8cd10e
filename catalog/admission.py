"""Whether the engine can carry a query: decided when it is added or started."""

from __future__ import annotations

from collections.abc import Mapping, Sized

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.checked_plan import CheckedPlan
from catalog.errors import Conflict, InvalidInput
from catalog.limits import Limits
from catalog.models import Object, OutputRow, QueryRow, StreamRow
from catalog.plan import Plan, source_nodes


def require_admissible(checked: CheckedPlan, limits: Limits) -> None:
    """Raise InvalidInput, saying what would fit, for a plan that is too much by itself."""
    sources = len(source_nodes(checked.plan))
    if sources > limits.sources:
        raise InvalidInput(
            f"the query reads streams and outputs {sources} times, and may {limits.sources} "
            "times, one that is read twice counted twice; make a part of it a query of its own "
            "and read its output"
        )
    copies = checked.copies
    if copies > limits.window_copies:
        raise InvalidInput(
            f"a tuple would be in {copies} windows at once, and may be in {limits.window_copies} "
            "of a query: use a longer slide or a shorter window"
        )


def slots_of(plan: Plan, partitions: Mapping[str, Sized]) -> int:
    """How many tasks the sources of a plan take; `partitions` are those of each topic it reads."""
    return sum(len(partitions[each.relation.topic]) for each in source_nodes(plan))


def require_slots(session: Session, wanted: int, limits: Limits) -> None:
    """Raise Conflict where so many more tasks do not fit beside those of all that runs."""
    taken = _ingesting(session) + _querying(session)
    if taken + wanted > limits.slots:
        raise Conflict(
            f"the engine is full: the query takes {wanted} tasks, one for each partition of each "
            f"of its sources, and {max(0, limits.slots - taken)} of {limits.slots} are free; "
            "stop another query first, or read fewer partitions"
        )


def _ingesting(session: Session) -> int:
    partitions = (
        select(func.sum(StreamRow.partitions))
        .join(Object, Object.id == StreamRow.object_id)
        .where(Object.removed_at.is_(None))
    )
    return session.scalar(partitions) or 0


def _querying(session: Session) -> int:
    slots = (
        select(func.sum(OutputRow.slots))
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Object, Object.id == OutputRow.object_id)
        .where(QueryRow.running, Object.removed_at.is_(None))
    )
    return session.scalar(slots) or 0
