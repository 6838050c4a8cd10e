"""The state of a query, as users see it.

It depends on what is wanted, on the report of the run's engine, and on whether the engine is
alive. If the engine is dead, nobody knows what runs there, and its last report does not count.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.engines import FIRST, LEVELS
from catalog.executions import execution_of, run_names_of
from catalog.models import (
    Assignment,
    ExecutionRow,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
    RunStatus,
    TopicFault,
)
from catalog.run_names import execution_of as execution_of_run
from catalog.topics import lab_topic
from catalog.wanted import delivery_topics, is_in_step, used_topics

STOPPED, STARTING, STOPPING, UNKNOWN = "stopped", "starting", "stopping", "unknown"
FAILED, RESTARTING = "failed", "restarting"
# The state of a query with several runs is the first of these that one of its runs has.
_WORST_FIRST = (UNKNOWN, FAILED, RESTARTING, STARTING, STOPPING, STOPPED, "running")
_DEAD = "its engine does not say that it is alive"
_WAITS = "its engine ended, and it waits until it can run apart for a while"
_BROKEN = "a topic that it uses is not what it should be; `health` tells which"
_UNPROVEN = "it stands still until a fence is proven"
_CHANGED = "policies have changed what its roles see; it begins anew with that"
_NO_ENGINE = "no engine is free for one of the levels that read it"
_NOBODY = "nobody subscribes, so nothing runs yet"


@dataclass(frozen=True, slots=True)
class QueryState:
    """The state of a query, with its reason and the time of its start, if these are known."""

    state: str
    message: str = ""
    since: datetime | None = None


def state_of_query(
    session: Session, output_ids: Sequence[int], running: bool, living: Container[str]
) -> QueryState:
    """The state of the query with these outputs.

    `running` says whether it should run. `living` are the engines that are alive.
    """
    found = [_state(session, output_id, running, living) for output_id in output_ids]
    if not found:
        return QueryState(STOPPED)
    worst = min(found, key=lambda state: _WORST_FIRST.index(state.state))
    messages = dict.fromkeys(state.message for state in found if state.message)
    return QueryState(worst.state, "; ".join(messages), worst.since)


def _state(session: Session, output_id: int, running: bool, living: Container[str]) -> QueryState:
    if running and (changed := _views_changed_at(session, output_id)) is not None:
        return QueryState(RESTARTING, _CHANGED, changed)
    execution = session.get_one(ExecutionRow, execution_of(session, output_id))
    names = run_names_of(session, output_id)
    status = _worst(session, names)
    stands = status is None or status.state == STOPPED
    since = _since(session, output_id, execution, status)
    if not running and stands:
        # Until its batch has ended, the execution that it has left still delivers to it.
        left = delivery_topics(session, output_id) & used_topics(session)
        return QueryState(STOPPING if left else STOPPED, since=since)
    assigned = _assigned(session, execution, names)
    parked = next((each.parked_because for each in assigned if each.parked_because), "")
    if running and parked:
        return QueryState(FAILED, parked, since)
    if running and stands and any(each.on_trial and not each.tried for each in assigned):
        return QueryState(RESTARTING, _WAITS, since)
    engines = {each.engine for each in assigned} or {FIRST}
    if any(engine not in living for engine in engines - {LEVELS}):
        return QueryState(UNKNOWN, _DEAD)
    if not running:
        return QueryState(STOPPING, status.message if status else "", since)
    if not names:
        return QueryState("running", _NOBODY, since)
    if LEVELS in engines:
        return QueryState(STARTING, _NO_ENGINE, since)
    if status is None or stands:
        if not all(is_in_step(session, engine) for engine in engines):
            return QueryState(STARTING)
        return QueryState(STOPPED, _why_it_stands(session, output_id), since)
    return QueryState(status.state, status.message, since)


def _assigned(
    session: Session, execution: ExecutionRow, names: Sequence[str]
) -> Sequence[Assignment]:
    """The assignments of the runs with these names, or of their execution while there are none."""
    ids = {of for of in map(execution_of_run, names) if of is not None} or {execution.id}
    rows = select(Assignment).where(Assignment.execution_id.in_(ids))
    rows = rows.execution_options(populate_existing=True)
    return session.scalars(rows.order_by(Assignment.execution_id)).all()


def _views_changed_at(session: Session, output_id: int) -> datetime | None:
    own = select(QueryRow.views_changed_at)
    own = own.join(OutputRow, OutputRow.query_id == QueryRow.object_id)
    return session.scalar(own.where(OutputRow.object_id == output_id))


def _worst(session: Session, names: Sequence[str]) -> RunStatus | None:
    """The report on the run that is in the worst state; None if there is none on one of them."""
    found = [session.get(RunStatus, name, populate_existing=True) for name in names]
    known = [status for status in found if status is not None]
    if not known or len(known) < len(found):
        return None
    return min(known, key=lambda status: _WORST_FIRST.index(status.state))


def _since(
    session: Session, output_id: int, execution: ExecutionRow, status: RunStatus | None
) -> datetime | None:
    """Since when the output has this state: not earlier than it exists, whatever shares its run."""
    if status is None:
        return execution.begins_at
    return max(status.since, session.get_one(Object, output_id).created_at)


def _why_it_stands(session: Session, output_id: int) -> str:
    used = _topics(session, output_id)
    faults = session.scalars(select(TopicFault.topic))
    return _BROKEN if used.intersection(faults) else _UNPROVEN


def _topics(session: Session, output_id: int) -> frozenset[str]:
    read = select(OutputInput.relation_id).where(OutputInput.output_id == output_id)
    related: Iterable[str] = session.scalars(
        select(Object.name).where((Object.id == output_id) | Object.id.in_(read))
    )
    return frozenset({*map(lab_topic, related), *delivery_topics(session, output_id)})
