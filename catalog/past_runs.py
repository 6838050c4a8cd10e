"""Runs that nothing will ever compute again, so that what they keep can be deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.models import DeliveryClass, ExecutionRow, Object, OutputRow
from catalog.output_parts import copies
from catalog.run_names import class_of, execution_of, query_run_name


def past_runs(session: Session, names: Collection[str]) -> Mapping[str, Sequence[str]]:
    """Those of these runs of queries that are past -> the runs that begin with a copy of its state.

    An execution is past when no output that is not removed has it or moves to it, and no class that
    has an engine of its own. Nothing gives it an output again. A run of one class is also past when
    the topic of its class is deleted. A run whose execution is not in the catalog is not past: this
    may be another catalog.
    """
    of = {name: execution_of(name) for name in names}
    known = _known(session, {each for each in of.values() if each is not None})
    classes = {each for each in map(class_of, names) if each is not None}
    past, deleted = known - _needed(session), _deleted(session, classes)
    copied = copies(session)
    return {
        name: copied.get(execution, ()) if name == query_run_name(execution) else ()
        for name, execution in of.items()
        if execution in known and (execution in past or class_of(name) in deleted)
    }


def _known(session: Session, executions: Collection[int]) -> set[int]:
    return set(session.scalars(select(ExecutionRow.id).where(ExecutionRow.id.in_(executions))))


def _needed(session: Session) -> set[int]:
    """The ids of the executions that an output or a class has."""
    live = Object.removed_at.is_(None)
    outputs = select(OutputRow.execution_id, OutputRow.moves_to).join(
        Object, Object.id == OutputRow.object_id
    )
    classes = select(DeliveryClass.execution_id).join(Object, Object.id == DeliveryClass.output_id)
    of_classes = session.scalars(classes.where(live, DeliveryClass.removed_at.is_(None)))
    found = [each for row in session.execute(outputs.where(live)) for each in row]
    return {each for each in (*found, *of_classes) if each is not None}


def _deleted(session: Session, classes: Collection[int]) -> set[int]:
    own = (DeliveryClass.id.in_(classes), DeliveryClass.removed_at.is_not(None))
    return set(session.scalars(select(DeliveryClass.id).where(*own)))
