"""Backfills: an access gets results of what came before its subscription, on request.

A delivery class is fed from when it is opened. A backfill is one more class, for one access alone,
with an execution of its own: the plan of the output over what is kept of its sources' lab topics.
The clearance is what the access shows when it is asked for. So the rules for its topic are those of
all classes: a revocation cuts it and fences it.

The run begins at the offsets of its execution. It has done its work when all is delivered that came
before its `ends`. From there on the other classes of the access have whole results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from catalog.models import Backfill, DeliveryClass, ExecutionRow, Object, OutputRow, QueryRow

Offsets = Mapping[str, Mapping[str, int]]


class BackfillState(StrEnum):
    """How far a backfill has come.

    It is INCOMPLETE if it has ended and some results may be missing.
    """

    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


def state_of(row: Backfill) -> BackfillState:
    """The state of the backfill."""
    if row.ended_at is None:
        return BackfillState.RUNNING
    return BackfillState.COMPLETE if row.complete else BackfillState.INCOMPLETE


@dataclass(frozen=True, slots=True)
class WantedBackfill:
    """A backfill whose run should run: its class, and the output and the execution of the class."""

    row: DeliveryClass
    output: OutputRow
    execution: ExecutionRow
    after_ms: int | None
    ends: Offsets | None


def wanted_backfills(session: Session) -> Sequence[WantedBackfill]:
    """The backfills that should run, in the order of their executions.

    As for the output itself, its query should run and not wait to be merged anew.
    """
    owner = aliased(Object)
    query = (
        select(DeliveryClass, OutputRow, ExecutionRow, Backfill.after_ms, Backfill.ends)
        .join(Backfill, Backfill.class_id == DeliveryClass.id)
        .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
        .join(ExecutionRow, ExecutionRow.id == DeliveryClass.execution_id)
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Object, Object.id == OutputRow.object_id)
        .join(owner, owner.id == OutputRow.query_id)
        .where(Backfill.ended_at.is_(None))
        .where(DeliveryClass.opened_at.is_not(None), DeliveryClass.closed_at.is_(None))
        .where(QueryRow.running, QueryRow.views_changed_at.is_(None))
        .where(Object.removed_at.is_(None), owner.removed_at.is_(None))
        .order_by(ExecutionRow.id)
    )
    return [WantedBackfill(*row) for row in session.execute(query)]


def unended_backfills(session: Session) -> Sequence[tuple[Backfill, DeliveryClass]]:
    """The backfills that have not ended, each with its class, the oldest first."""
    query = select(Backfill, DeliveryClass).join(
        DeliveryClass, DeliveryClass.id == Backfill.class_id
    )
    found = session.execute(query.where(Backfill.ended_at.is_(None)).order_by(Backfill.class_id))
    return [(row, of_class) for row, of_class in found]


def backfills_of(
    session: Session, access_ids: Collection[int]
) -> Sequence[tuple[Backfill, DeliveryClass]]:
    """The backfills of these accesses, each with its class, the oldest first.

    One whose topic was taken is left out, because the access has nothing of it any more.
    """
    query = select(Backfill, DeliveryClass).join(
        DeliveryClass, DeliveryClass.id == Backfill.class_id
    )
    own = (Backfill.access_id.in_(access_ids), DeliveryClass.closed_at.is_(None))
    found = session.execute(query.where(*own).order_by(Backfill.class_id))
    return [(row, of_class) for row, of_class in found]


def end(row: Backfill, now: datetime, *, complete: bool) -> None:
    """End the backfill: nothing is wanted of its run any more. Its topic stays.

    Call it inside a change or `Catalog.bookkeeping`.
    """
    row.ended_at, row.complete = now, complete


def held_executions(session: Session) -> Sequence[DeliveryClass]:
    """The classes whose backfills have ended and still hold tasks of an engine.

    They hold them until their runs have stopped (`catalog.level_engines`: an engine belongs to its
    level until then).
    """
    query = select(DeliveryClass).join(Backfill, Backfill.class_id == DeliveryClass.id)
    ended = (Backfill.ended_at.is_not(None), DeliveryClass.execution_id.is_not(None))
    return session.scalars(query.where(*ended).order_by(DeliveryClass.id)).all()
