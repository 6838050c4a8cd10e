"""Executions as administrators see them, output by output. Nothing here names an object.

Equal queries share an execution. What an administrator does to one output changes no other: its id
here is the output's. `run` says which execution computes it.

So a user with CHANGE SYSTEM can stop a query that burdens the platform, without seeing which query
it is. The administrator of a stream can stop the queries that read it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, orm, select

from catalog.assignments import engine_of
from catalog.errors import NotFound
from catalog.executions import run_names_of, sharing
from catalog.models import (
    DeliveryClass,
    ExecutionRow,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
)
from catalog.permission import ObjectKind, Permission
from catalog.plan import Plan, is_stateful
from catalog.run_names import query_run_name
from catalog.run_state import state_of_query
from catalog.stored_form import from_stored
from secadmin.control.outputs import turn
from secadmin.control.platform import Platform
from secadmin.control.queries import remove, stop_for
from secadmin.control.room import reads_of
from secadmin.control.work import Caller, Work, reading, working


@dataclass(frozen=True, slots=True)
class ExecutionView:
    """The execution of one output, and its use of the platform.

    `run` is the name of its run, which computes `sharing` outputs in the engine `engine`. `sources`
    is the number of reads in its plan. `classes` is the number of its delivery topics. `slots` is
    the number of tasks that run at once, which is the number of partitions it reads.
    """

    id: int
    owner: str
    running: bool
    state: str
    added_at: datetime
    since: datetime | None
    kind: str
    sources: int
    classes: int
    slots: int
    weak: bool
    run: str
    sharing: int
    engine: str


@dataclass(frozen=True, slots=True)
class Reader:
    """An execution that reads a stream, as the stream's administrator sees it."""

    id: int
    running: bool


def list_executions(platform: Platform, caller: Caller) -> list[ExecutionView]:
    """All executions, also those that the caller may not view. Needs CHANGE SYSTEM."""
    with reading(platform, caller, "list executions", "system") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        session = view.session
        living = platform.pulse.living(session)
        classes = _open_classes(session)
        rows = session.execute(
            select(Object, QueryRow.running)
            .join(OutputRow, OutputRow.object_id == Object.id)
            .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
            .where(Object.removed_at.is_(None))
            .order_by(Object.id)
        ).all()
        return [
            _view(session, obj, running, living, classes.get(obj.id, 0)) for obj, running in rows
        ]


def stop_execution(platform: Platform, caller: Caller, execution: int) -> list[int]:
    """Stop the query of the execution. Gives the ids of all executions that stopped.

    Needs CHANGE SYSTEM.
    """
    with working(platform, caller, "stop execution", f"execution {execution}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        query = work.session.get_one(QueryRow, _output(work, execution).query_id)
        return stop_for(work, [query], "stopped by an administrator")


def remove_execution(platform: Platform, caller: Caller, execution: int) -> list[int]:
    """Remove the query of the execution. Gives the ids of all executions that are removed.

    Needs CHANGE SYSTEM. Raises Conflict, with the ids of the executions that block it, while other
    queries read an output.
    """
    with working(platform, caller, "remove execution", f"execution {execution}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        query = work.session.get_one(Object, _output(work, execution).query_id)
        removed = remove(platform, work, query)
        work.detail["removed"] = removed
        return removed


def set_weak(platform: Platform, caller: Caller, execution: int, weak: bool) -> None:
    """Turn weak semantics of the output on or off, without a right to view the output.

    Needs CHANGE SYSTEM.
    """
    with working(platform, caller, "set semantics", f"execution {execution}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        turn(platform, work, _output(work, execution), weak)


def readers_of_stream(platform: Platform, caller: Caller, stream: str) -> list[Reader]:
    """The executions of all users that read the stream itself. Needs CHANGE PERM on it."""
    with reading(platform, caller, "show readers", f"stream {stream}") as view:
        obj = view.find(ObjectKind.STREAM, stream)
        view.require(Permission.CHANGE_PERM, obj)
        return [
            Reader(output.object_id, query.running)
            for output, query in _reading(view.session, obj.id)
        ]


def stop_readers(platform: Platform, caller: Caller, stream: str) -> list[int]:
    """Stop the queries that read the stream. Gives the ids of all executions that stopped.

    The owners keep their queries and see the reason. Needs CHANGE PERM on the stream.
    """
    with working(platform, caller, "stop readers", f"stream {stream}") as work:
        obj = work.find(ObjectKind.STREAM, stream)
        work.require(Permission.CHANGE_PERM, obj)
        queries = [query for _, query in _reading(work.session, obj.id)]
        return stop_for(work, queries, "stopped by the owner of a stream that it reads")


def _reading(session: orm.Session, relation_id: int) -> list[tuple[OutputRow, QueryRow]]:
    """The live outputs whose plans read the relation, with their queries."""
    rows = (
        select(OutputRow, QueryRow)
        .join(OutputInput, OutputInput.output_id == OutputRow.object_id)
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Object, Object.id == OutputRow.object_id)
        .where(OutputInput.relation_id == relation_id, Object.removed_at.is_(None))
        .order_by(OutputRow.object_id)
    )
    return [(output, query) for output, query in session.execute(rows)]


def _output(work: Work, execution: int) -> OutputRow:
    """The live output of that id. Only for callers that hold CHANGE SYSTEM."""
    live = (
        select(OutputRow)
        .join(Object, Object.id == OutputRow.object_id)
        .where(Object.id == execution, Object.removed_at.is_(None))
    )
    found = work.session.scalar(live)
    if found is None:
        raise NotFound(f"there is no execution {execution}")
    return found


def _open_classes(session: orm.Session) -> dict[int, int]:
    """The number of delivery topics of each output."""
    counted = (
        select(DeliveryClass.output_id, func.count().label("open"))
        .where(DeliveryClass.opened_at.is_not(None), DeliveryClass.closed_at.is_(None))
        .group_by(DeliveryClass.output_id)
    )
    return {row.output_id: row.open for row in session.execute(counted)}


def _view(
    session: orm.Session, obj: Object, running: bool, living: Container[str], classes: int
) -> ExecutionView:
    output = session.get_one(OutputRow, obj.id)
    execution = session.get_one(ExecutionRow, output.execution_id)
    plan = from_stored(Plan, output.plan)
    state = state_of_query(session, [obj.id], running, living)
    names = run_names_of(session, obj.id) or (query_run_name(execution.id),)
    return ExecutionView(
        id=obj.id,
        owner=obj.owner.name if obj.owner else "",
        running=running,
        state=state.state,
        added_at=obj.created_at,
        since=state.since,
        kind="stateful" if is_stateful(plan) else "stateless",
        sources=reads_of(plan),
        classes=classes,
        slots=execution.slots,
        weak=output.weak,
        run=query_run_name(execution.id),
        sharing=len(sharing(session, execution.id)),
        engine=", ".join(sorted({engine_of(session, name) for name in names})),
    )
