"""Assignments: each execution runs in one engine, and moves only after it has ended there.

An execution without a row belongs to the first query engine. Call the functions
that write inside a change or `Catalog.bookkeeping`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from catalog.admission import engines_for
from catalog.engines import FIRST, INGEST, LEVELS, PROBATION
from catalog.limits import Limits
from catalog.models import Assignment, ExecutionRow, RunStatus
from catalog.pulse import heartbeat_of
from catalog.run_names import execution_of, query_run_name


def engine_of(session: Session, run: str) -> str:
    """The only engine that may run the run of that name now."""
    execution_id = execution_of(run)
    if execution_id is None:
        return INGEST
    row = session.get(Assignment, execution_id, populate_existing=True)
    return row.engine if row is not None else FIRST


def assigned_to(session: Session, engine: str) -> frozenset[int]:
    """The executions that this engine may run. Some of them may not be wanted at the moment."""
    rows = {row.execution_id: row for row in session.scalars(select(Assignment))}
    own = frozenset(i for i, row in rows.items() if row.engine == engine and _may_run(row))
    if engine != FIRST:
        return own
    return own | (frozenset(session.scalars(select(ExecutionRow.id))) - rows.keys())


def parked(session: Session) -> Mapping[int, str]:
    """The executions that no engine runs any more, each with the reason."""
    query = select(Assignment.execution_id, Assignment.parked_because)
    found = session.execute(query.where(Assignment.parked_because != "")).all()
    return {row.execution_id: row.parked_because for row in found}


def assign(
    session: Session, slots: Mapping[int, int], engines: Collection[str], limits: Limits
) -> None:
    """Assign an engine to each execution that starts.

    `slots` has the number of tasks that each execution takes, by its id. A suspected execution
    stays suspected. A parked execution runs alone first. Raises Conflict if no engine has room.
    """
    for execution_id, home in engines_for(session, slots, engines, limits).items():
        row = session.get(Assignment, execution_id)
        if row is None:
            row = Assignment(execution_id=execution_id, home=home, engine=home, on_trial=False)
            session.add(row)
        if row.parked_because:
            row.parked_because, row.deaths, row.on_trial, row.tried = "", 0, True, False
            row.trial_group = newest_group(session) + 1
        row.home = home
        # Nothing runs where executions wait for level engines.
        row.changed_beat = 0 if home == LEVELS else heartbeat_of(session, home).beats
        hand_over(session, row)
    session.flush()


def newest_group(session: Session) -> int:
    """The highest number that a group of suspected executions has had, as far as it matters."""
    session.flush()
    return session.scalar(select(func.max(Assignment.trial_group))) or 0


def target_of(row: Assignment) -> str:
    """The engine in which the execution should run."""
    return PROBATION if row.on_trial else row.home


def hand_over(session: Session, row: Assignment) -> bool:
    """Move the execution to the engine where it should run, if it does not run now.

    Returns whether it moved. This is safe because an engine reports a run before it starts it.
    """
    if row.engine == target_of(row) or _is_running(session, row.execution_id):
        return False
    row.engine, row.tried, row.tried_beat = target_of(row), False, None
    if not row.on_trial and row.home != LEVELS:
        row.changed_beat = heartbeat_of(session, row.home).beats
    return True


def reports_on(execution_id: int) -> ColumnElement[bool]:
    """The reports on all runs of the execution (`RunStatus`)."""
    own = query_run_name(execution_id)
    return or_(RunStatus.name == own, RunStatus.name.like(f"{own}-%"))


def _is_running(session: Session, execution_id: int) -> bool:
    """Whether a run of the execution runs, by the last report."""
    session.flush()
    live = select(RunStatus.name).where(reports_on(execution_id), RunStatus.state != "stopped")
    return session.scalar(live.limit(1)) is not None


def note_change(session: Session, run: str) -> None:
    """Note that the run starts with a changed plan or changed classes."""
    row = session.get(Assignment, execution_of(run) or 0)
    if row is not None and row.engine == row.home:
        row.changed_beat = heartbeat_of(session, row.home).beats


def _may_run(row: Assignment) -> bool:
    """Whether the execution's engine may run it now.

    An engine runs no execution that is parked or belongs in another engine. The engine `probation`
    runs only the executions that are tried.
    """
    here = row.engine == target_of(row) and not row.parked_because
    return here and (row.engine != PROBATION or row.tried)
