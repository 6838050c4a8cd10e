"""Executions in the tables: which one computes an output, and which outputs share one.

An execution that several outputs share runs for all of them: each of their queries is wanted. An
output whose query stops leaves the others, and goes on in an execution of its own. If the execution
keeps state, this one begins with a copy of it. An output that moves has two executions
(`catalog.moves`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from catalog.models import (
    Assignment,
    DeliveryClass,
    ExecutionRow,
    Object,
    OutputRow,
    QueryRow,
    RunStatus,
)
from catalog.placement import Placement
from catalog.run_names import query_run_name

MOST_SHARING = 32
"""How many outputs may share one execution: each takes a record for each of its results."""


def execution_of(session: Session, output_id: int) -> int:
    """The id of the execution that computes the output."""
    return session.get_one(OutputRow, output_id).execution_id


def executions_of(session: Session, output_ids: Iterable[int]) -> frozenset[int]:
    """The ids of the executions that compute these outputs.

    They are also those to which the outputs move, and those of their classes alone.
    """
    outputs = set(output_ids)
    own = OutputRow.object_id.in_(outputs)
    rows = session.execute(select(OutputRow.execution_id, OutputRow.moves_to).where(own)).all()
    of_classes = executions_of_classes(session, outputs)
    return of_classes | {each for row in rows for each in row if each is not None}


def executions_of_classes(session: Session, output_ids: Collection[int]) -> frozenset[int]:
    """The ids of the executions that compute one class of these outputs (`level_engines`)."""
    own = (DeliveryClass.output_id.in_(output_ids), DeliveryClass.removed_at.is_(None))
    found = session.scalars(select(DeliveryClass.execution_id).where(*own))
    return frozenset(each for each in found if each is not None)


def run_names_of(session: Session, output_id: int) -> tuple[str, ...]:
    """The names of the runs that compute the output.

    It is one, or one for each open class whose topic exists (`Placement.APART`): none without any.
    Those of backfills are left out.
    """
    row = session.get_one(OutputRow, output_id)
    if row.placement != Placement.APART:
        return (query_run_name(row.execution_id),)
    opened = (DeliveryClass.opened_at.is_not(None), DeliveryClass.closed_at.is_(None))
    own = select(DeliveryClass).where(DeliveryClass.output_id == output_id, *opened)
    own = own.where(DeliveryClass.backfills.is_(False))
    classes = session.scalars(own.order_by(DeliveryClass.id))
    return tuple(query_run_name(each.execution_id or row.execution_id, each.id) for each in classes)


def sharing(session: Session, execution_id: int) -> list[int]:
    """The ids of the outputs that share the execution, or move to it, and are not removed."""
    own = select(OutputRow.object_id).join(Object, Object.id == OutputRow.object_id)
    here = or_(OutputRow.execution_id == execution_id, OutputRow.moves_to == execution_id)
    live = (here, Object.removed_at.is_(None))
    return list(session.scalars(own.where(*live).order_by(OutputRow.object_id)))


def to_join(session: Session, key: str) -> int | None:
    """The execution that a new output with this key joins; None if it runs alone.

    It is one that runs. What is stopped, parked or on trial would not begin at once, so the output
    would wait for what its owner does not know. What waits to be merged anew has an old plan.
    """
    if not key:
        return None
    found = (
        select(ExecutionRow.id)
        .join(OutputRow, OutputRow.execution_id == ExecutionRow.id)
        .join(Object, Object.id == OutputRow.object_id)
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Assignment, Assignment.execution_id == ExecutionRow.id)
        .where(ExecutionRow.key == key, Object.removed_at.is_(None))
        .where(QueryRow.running, QueryRow.views_changed_at.is_(None))
        .where(Assignment.parked_because == "", Assignment.on_trial.is_(False))
        .group_by(ExecutionRow.id)
        .having(func.count() < MOST_SHARING)
        .order_by(ExecutionRow.id)
    )
    session.flush()
    return session.scalars(found.limit(1)).first()


def leave(session: Session, output_ids: Collection[int], now: datetime) -> None:
    """Give each of these outputs that shares its execution one of its own.

    Call it when their queries stop, and inside a change. An output that moves stays where it is if
    that is possible. If it turns, each of its two executions has results that the other one has
    not, so it goes on with both.
    """
    for output_id in sorted(output_ids):
        row = session.get_one(OutputRow, output_id)
        if row.moves_to is not None and not row.turns:
            row.moves_to = row.turn_ms = None
            session.flush()
        row.execution_id = _alone(session, row.execution_id, output_id, now)
        if row.moves_to is not None:
            row.moves_to = _alone(session, row.moves_to, output_id, now)
        session.flush()


def _alone(session: Session, execution_id: int, output_id: int, now: datetime) -> int:
    """The id of an execution that goes on as this one does, for this output alone.

    If it keeps state, a new one begins with a copy of it, as it is when the output leaves. If not,
    it begins at what comes from `now` on, as the one that is left would if it stopped. If this one
    does not run, nobody knows how far it has come. Then the new one begins where it began.
    """
    if sharing(session, execution_id) == [output_id]:
        return execution_id
    left = session.get_one(ExecutionRow, execution_id)
    own = ExecutionRow(
        key=left.key,
        plan=left.plan,
        starting_offsets=left.starting_offsets,
        slots=left.slots,
        whole_ms=left.whole_ms,
    )
    if left.whole_ms is not None:
        own.copy_of = left.id
    else:
        status = session.get(RunStatus, query_run_name(left.id), populate_existing=True)
        own.begins_at = now if status is not None and status.state == "running" else None
    session.add(own)
    session.flush()
    return own.id
