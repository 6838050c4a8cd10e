"""A stream follows if somebody adds partitions to one of its topics.

A tuple stays in its partition from a sender's topic to the lab topic. So all of them need the same
number. Kafka never takes partitions away. So all get the largest number that one of them has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import or_, orm, select, update

from catalog.admission import ingesting, runs_of, taken_slots
from catalog.audit import PLATFORM
from catalog.engines import FIRST
from catalog.errors import Conflict, PlatformError
from catalog.models import (
    Assignment,
    ExecutionRow,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
    SenderRow,
    StreamRow,
    TopicFault,
)
from catalog.permission import ObjectKind
from catalog.placement import Placement
from catalog.plan import Plan, source_nodes
from catalog.sender_state import SenderState
from catalog.stored_form import from_stored
from catalog.topics import lab_topic, parked_topic
from secadmin.control.alignment import TOPIC_PATIENCE
from secadmin.control.platform import Platform


def follow_partitions(platform: Platform) -> None:
    """Let each stream that an engine reports follow its topics.

    If there is no room for the tasks that it would take then, nothing of it changes. It stays held,
    and its fault says why. Raises the first failure when all were tried.
    """
    with platform.catalog.read() as session:
        faults = set(session.scalars(select(TopicFault.topic)))
        streams = _streams(session, faults) if faults else {}
    failures: list[PlatformError] = []
    for stream, topics in streams.items():
        try:
            counts = platform.kafka.partitions(topics)
            # If a topic is gone, that holds the stream, too, and has another remedy.
            if counts.keys() == set(topics):
                _follow(platform, stream, counts)
        except Conflict as refusal:
            _tell(platform, topics, refusal)
        except PlatformError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def lacking(counts: Mapping[str, int]) -> dict[str, int]:
    """The topics that have fewer partitions than another one, each with the number that it needs.

    `counts` has the number of partitions of each topic of a stream.
    """
    most = max(counts.values(), default=0)
    return {topic: most for topic, count in counts.items() if count < most}


def _streams(session: orm.Session, faults: set[str]) -> dict[int, list[str]]:
    """The live streams with a fault, each with its topics but for the quarantine."""
    live = (Object.kind == ObjectKind.STREAM, Object.removed_at.is_(None))
    rows = select(Object.id, Object.name, StreamRow.label_rule.is_not(None).label("ruled"))
    streams = rows.join(StreamRow, StreamRow.object_id == Object.id).where(*live)
    topics = {
        row.id: [lab_topic(row.name), *([parked_topic(row.name)] if row.ruled else [])]
        for row in session.execute(streams)
    }
    there = (SenderRow.opened_at.is_not(None), SenderRow.state != SenderState.GONE)
    senders = select(SenderRow.stream_id, SenderRow.topic).where(*there)
    for row in session.execute(senders.order_by(SenderRow.id)):
        topics.get(row.stream_id, []).append(row.topic)
    return {stream: names for stream, names in topics.items() if not faults.isdisjoint(names)}


def _follow(platform: Platform, stream: int, counts: Mapping[str, int]) -> None:
    most = max(counts.values())
    with platform.alignment.lock(list(counts), TOPIC_PATIENCE):
        with platform.catalog.read() as session:
            if not lacking(counts) and session.get_one(StreamRow, stream).partitions == most:
                return
            _growth(platform, session, stream, most).require_room(platform, session)
        platform.kafka.add_partitions(lacking(counts))
        with platform.catalog.change(PLATFORM) as change:
            growth = _growth(platform, change.session, stream, most)
            growth.require_room(platform, change.session)
            change.session.get_one(StreamRow, stream).partitions = most
            for execution_id, more in growth.executions.items():
                change.session.get_one(ExecutionRow, execution_id).slots += more
            name = change.session.get_one(Object, stream).name
            detail = {"partitions": most, "executions": sorted(growth.executions)}
            change.audit("follow partitions", f"stream {name}", detail=detail)
            change.bump_generation()


@dataclass(frozen=True, slots=True)
class _Growth:
    """How many tasks more ingest, each execution (by its id) and each engine takes."""

    ingest: int
    executions: Mapping[int, int]
    engines: Mapping[str, int]

    def require_room(self, platform: Platform, session: orm.Session) -> None:
        """Raise Conflict if an engine has too few slots."""
        most = platform.limits.slots
        taken = dict(taken_slots(session, platform.spaces.engines))
        needed = {"ingest": (ingesting(session), self.ingest)}
        needed |= {engine: (taken.get(engine, 0), more) for engine, more in self.engines.items()}
        for engine, (held, more) in needed.items():
            if more and held + more > most:
                raise Conflict(
                    f"partitions were added, which take {more} tasks more in {engine}, and "
                    f"{max(0, most - held)} of {most} are free; stop a query, or remove a stream"
                )


def _growth(platform: Platform, session: orm.Session, stream: int, partitions: int) -> _Growth:
    """The tasks that the stream would take with so many partitions, beyond those it takes now."""
    more = max(0, partitions - session.get_one(StreamRow, stream).partitions)
    read = (SenderRow.stream_id == stream, SenderRow.state != SenderState.GONE)
    senders = len(session.scalars(select(SenderRow.id).where(*read)).all())
    its_own = OutputRow.execution_id == ExecutionRow.id
    readers = (
        select(ExecutionRow, OutputRow.placement, QueryRow.running, Assignment)
        .join(OutputRow, or_(its_own, OutputRow.moves_to == ExecutionRow.id))
        .join(OutputInput, OutputInput.output_id == OutputRow.object_id)
        .join(Object, Object.id == OutputRow.object_id)
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Assignment, Assignment.execution_id == ExecutionRow.id, isouter=True)
        .where(OutputInput.relation_id == stream, Object.removed_at.is_(None))
    )
    executions: dict[int, int] = {}
    engines: Counter[str] = Counter()
    for execution, placement, running, assigned in session.execute(readers):
        if execution.id in executions:
            continue
        reads = source_nodes(from_stored(Plan, execution.plan))
        runs = runs_of(Placement(placement), platform.limits)
        wanted = runs * more * sum(each.relation.object_id == stream for each in reads)
        executions[execution.id] = wanted
        if running and not (assigned and assigned.parked_because):
            engines[assigned.home if assigned else FIRST] += wanted
    return _Growth(more * max(1, senders), executions, engines)


def _tell(platform: Platform, topics: Sequence[str], refusal: Conflict) -> None:
    """Say in the stream's faults why it stays held."""
    with platform.catalog.bookkeeping() as session:
        own = update(TopicFault).where(TopicFault.topic.in_(topics))
        session.execute(own.values(reason=refusal.detail))
