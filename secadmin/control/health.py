"""The health of the platform, and for its administrators the list of problems."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.engines import INGEST, all_engines
from catalog.models import Object, OutputRow, QueryRow, RunStatus, TopicFault
from catalog.permission import ObjectKind, Permission
from catalog.run_state import FAILED, RESTARTING, STOPPED, state_of_query
from catalog.runs import NOT_ENDED
from catalog.topics import topic_relation
from secadmin.control.platform import Platform
from secadmin.control.wanted_access import topics_of
from secadmin.control.work import Caller, reading

_KEPT_S = 1.0
_FAILING = (FAILED, RESTARTING, STOPPED)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: the object or the engine that has it, the reason, and since when."""

    what: str
    reason: str
    since: datetime | None = None


class Health:
    """Says whether all is well. It looks at most once a second, because anybody may ask."""

    def __init__(self, platform: Platform, seconds: Callable[[], float] = time.monotonic) -> None:
        self._platform = platform
        self._seconds = seconds
        self._lock = Lock()
        self._until = float("-inf")
        self._well = False

    def is_well(self) -> bool:
        """Say whether there is no problem. Raises Unavailable."""
        with self._lock:
            if self._seconds() >= self._until:
                with self._platform.catalog.read() as session:
                    self._well = next(_problems(self._platform, session), None) is None
                self._until = self._seconds() + _KEPT_S
            return self._well


def list_problems(platform: Platform, caller: Caller) -> list[Problem]:
    """The problems of all objects. Needs CHANGE SYSTEM."""
    with reading(platform, caller, "show health", "system") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        return list(_problems(platform, view.session))


def faults_of(session: Session, obj: Object) -> Mapping[str, str]:
    """The object's topics that differ from the catalog, each with the reason."""
    own = select(TopicFault).where(TopicFault.topic.in_(topics_of(session, obj)))
    return {fault.topic: fault.reason for fault in session.scalars(own)}


def _problems(platform: Platform, session: Session) -> Iterator[Problem]:
    living = platform.pulse.living(session)
    for engine in all_engines(platform.spaces.count):
        if engine not in living:
            why = "it has no heartbeat: check whether it runs"
            yield Problem(f"engine {engine}", why)
    # Two engines may have found the same fault.
    faults = {f.topic: f for f in session.scalars(select(TopicFault).order_by(TopicFault.topic))}
    for fault in faults.values():
        yield Problem(_owner(session, fault.topic), f"{fault.topic}: {fault.reason}", fault.since)
    if INGEST in living:
        yield from _ingest(session)
    yield from _queries(session, living)
    yield from _leaving(session)


def _owner(session: Session, topic: str) -> str:
    name = topic_relation(topic)
    owner = select(Object.kind).where(Object.name == name, Object.gone_at.is_(None))
    kinds = (ObjectKind.STREAM, ObjectKind.OUTPUT)
    return f"{session.scalar(owner.where(Object.kind.in_(kinds))) or 'topic'} {name}"


def _ingest(session: Session) -> Iterator[Problem]:
    failing = (FAILED, RESTARTING)
    own = select(RunStatus).where(RunStatus.name.like("ingest-%"), RunStatus.state.in_(failing))
    for status in session.scalars(own.order_by(RunStatus.name)):
        yield Problem(status.name, f"{status.state}: {status.message}", status.since)


def _queries(session: Session, living: Container[str]) -> Iterator[Problem]:
    live = (
        select(Object.name, OutputRow.object_id, QueryRow.running)
        .join(QueryRow, QueryRow.object_id == Object.id)
        .join(OutputRow, OutputRow.query_id == Object.id)
        .where(Object.removed_at.is_(None))
        .order_by(Object.id, OutputRow.object_id)
    )
    for name, output_id, running in session.execute(live):
        state = state_of_query(session, [output_id], running, living)
        # A query that a call has stopped is no problem.
        if state.message == NOT_ENDED or (running and state.state in _FAILING):
            yield Problem(f"query {name}", f"{state.state}: {state.message}", state.since)


def _leaving(session: Session) -> Iterator[Problem]:
    leaving = select(Object).where(Object.removed_at.is_not(None), Object.gone_at.is_(None))
    stuck = select(RunStatus.topics).where(RunStatus.message == NOT_ENDED)
    used = {topic for topics in session.scalars(stuck) for topic in topics}
    for obj in session.scalars(leaving.order_by(Object.id)) if used else ():
        if used.intersection(topics_of(session, obj)):
            yield Problem(f"{obj.kind} {obj.name}", f"removed, but {NOT_ENDED}", obj.removed_at)
