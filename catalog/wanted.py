"""What should run, read from the tables, and what the runner says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby

from sqlalchemy import select, update
from sqlalchemy.orm import Session, aliased

from catalog.clearance import Clearance
from catalog.label import PUBLIC, Label
from catalog.models import (
    CategoryRow,
    DeliveryClass,
    Generation,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
    RunStatus,
    SenderRow,
    StreamRow,
    TopicFault,
    Withdrawal,
)
from catalog.plan_check import reach
from catalog.plan_json import decode, decode_plan
from catalog.relation import Relation
from catalog.runs import (
    FanOutClass,
    IngestRun,
    IngestStream,
    QueryRun,
    Run,
    RunReport,
    Sender,
    fingerprint,
)
from catalog.sender_state import is_ingested
from catalog.store import GENERATION_ID
from catalog.topics import quarantine_topic

NOTHING_APPLIED = -1
_MESSAGE_LENGTH = 2_000


def ingest_run_name(group: int) -> str:
    """The name of the run that serves a group of streams."""
    return f"ingest-{group}"


def query_run_name(output_id: int) -> str:
    """The name of the run that computes an output."""
    return f"query-{output_id}"


def generation(session: Session) -> int:
    """The number of changes so far of what should run."""
    row = session.get(Generation, GENERATION_ID, populate_existing=True)
    return row.value if row is not None else 0


def wanted_runs(session: Session) -> tuple[Run, ...]:
    """Everything that should run, in an order that only changes with what should run.

    A run that writes a topic whose fence is not proven stands still; it misses nothing.
    """
    sources = _source_bits(session)
    unproven = _unproven_topics(session)
    runs: list[Run] = [*_ingest_runs(session, sources), *_query_runs(session, sources)]
    return tuple(run for run in runs if not unproven & _delivers_to(run))


def report_applied(session: Session, applied: int) -> None:
    """Note that each run has told what it uses of this generation; call it in `bookkeeping`."""
    row = update(Generation).where(Generation.id == GENERATION_ID)
    session.execute(row.values(applied=applied))


def is_fed(session: Session, class_id: int) -> bool:
    """Whether the runner says that it feeds the class: then nothing that comes is missed."""
    row = session.get(DeliveryClass, class_id)
    if row is None:
        return False
    name = query_run_name(row.output_id)
    status = session.get(RunStatus, name, populate_existing=True)
    if status is None or status.state != "running":
        return False
    wanted = next((run for run in wanted_runs(session) if run.name == name), None)
    fed = isinstance(wanted, QueryRun) and any(c.topic == row.topic for c in wanted.classes)
    return fed and wanted is not None and status.fingerprint == fingerprint(wanted)


def report_status(session: Session, report: RunReport, now: datetime) -> None:
    """Note what a run is doing; call it inside `Catalog.bookkeeping`. No message holds data."""
    before = session.get(RunStatus, report.name, populate_existing=True)
    counts = Counter(before.counts if before else {})
    counts.update(report.counted)
    status = RunStatus(
        name=report.name,
        state=report.state,
        message=report.message[:_MESSAGE_LENGTH].replace("\0", ""),
        fingerprint=report.fingerprint,
        updated_at=now,
        since=before.since if before and before.state == report.state else now,
        topics=sorted(report.topics),
        counts=dict(counts),
    )
    session.merge(status)
    session.flush()


def forget_runs(session: Session) -> None:
    """A runner begins: nothing runs yet, whatever another one said; call it in `bookkeeping`."""
    session.execute(update(RunStatus).values(state="stopped", message="", topics=[]))
    report_applied(session, NOTHING_APPLIED)


def report_faults(session: Session, faults: Mapping[str, str], now: datetime) -> None:
    """Note which topics are not what they should be; call it inside `Catalog.bookkeeping`."""
    known = {row.topic: row for row in session.scalars(select(TopicFault))}
    for topic, row in known.items():
        if topic not in faults:
            session.delete(row)
    for topic, reason in faults.items():
        since = known[topic].since if topic in known else now
        session.merge(TopicFault(topic=topic, reason=reason, since=since))
    session.flush()


def is_in_step(session: Session) -> bool:
    """Whether the runner has seen the last change of what should run."""
    row = session.get(Generation, GENERATION_ID, populate_existing=True)
    return row is not None and row.value == row.applied


def used_topics(session: Session) -> frozenset[str]:
    """The topics that runs use, or are about to use, as the runner says."""
    return frozenset(
        topic for topics in session.scalars(select(RunStatus.topics)) for topic in topics
    )


def _unproven_topics(session: Session) -> frozenset[str]:
    query = select(Withdrawal.topic).where(Withdrawal.done_at.is_(None), Withdrawal.unproven)
    return frozenset(session.scalars(query))


def _delivers_to(run: Run) -> frozenset[str]:
    """The topics with subscribers that a run writes."""
    if isinstance(run, IngestRun):
        return frozenset(quarantine_topic(stream.relation.name) for stream in run.streams)
    return frozenset(cls.topic for cls in run.classes)


def _source_bits(session: Session) -> Mapping[int, int]:
    """stream id -> the bit of its source category."""
    query = select(CategoryRow.stream_id, CategoryRow.bit).where(CategoryRow.kind == "source")
    return {row.stream_id: row.bit for row in session.execute(query)}


def _ingest_runs(session: Session, sources: Mapping[int, int]) -> Iterable[IngestRun]:
    query = (
        select(StreamRow)
        .join(Object, Object.id == StreamRow.object_id)
        .where(Object.removed_at.is_(None))
        .order_by(StreamRow.ingest_group, StreamRow.object_id)
    )
    senders = _senders(session)
    for group, rows in groupby(session.scalars(query), key=lambda row: row.ingest_group):
        found = (_ingest_stream(row, sources, senders.get(row.object_id, ())) for row in rows)
        # A stream to which nobody may send has no topic to be read.
        streams = tuple(s for s in found if s is not None and s.senders)
        if streams:
            yield IngestRun(ingest_run_name(group), streams)


def _senders(session: Session) -> Mapping[int, tuple[Sender, ...]]:
    """stream id -> those whose topics are read."""
    query = select(SenderRow).where(is_ingested()).order_by(SenderRow.stream_id, SenderRow.id)
    by_stream = groupby(session.scalars(query), key=lambda row: row.stream_id)
    return {id_: tuple(Sender(row.id, row.topic) for row in rows) for id_, rows in by_stream}


def _ingest_stream(
    row: StreamRow, sources: Mapping[int, int], senders: tuple[Sender, ...]
) -> IngestStream | None:
    relation = _relation(row.relation)
    if relation.public:
        label = PUBLIC
    elif row.object_id in sources:
        label = Label.of(sources[row.object_id])
    else:
        # Without its category a stream's tuples would be public; so none flows.
        return None
    written = decode(row.record_format)
    ahead_ms, size = row.max_ahead_ms, row.max_bytes
    return IngestStream(relation, label, ahead_ms, size, written, row.partitions, senders)


def _query_runs(session: Session, sources: Mapping[int, int]) -> Iterable[QueryRun]:
    owner = aliased(Object)
    query = (
        select(OutputRow)
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Object, Object.id == OutputRow.object_id)
        .join(owner, owner.id == OutputRow.query_id)
        .where(QueryRow.running, Object.removed_at.is_(None), owner.removed_at.is_(None))
        .order_by(OutputRow.object_id)
    )
    classes = _open_classes(session)
    read = _read_by_others(session)
    of_sources = Label.of(*sources.values())
    for row in session.scalars(query):
        output = _relation(row.relation)
        plan = decode_plan(row.plan)
        fed = (_fan_out(cls, output) for cls in classes.get(row.object_id, ()))
        yield QueryRun(
            name=query_run_name(row.object_id),
            plan=plan,
            output=output,
            classes=tuple(cls for cls in fed if cls is not None),
            labelled=row.object_id in read,
            # Only those in reach, or each new stream would restart every query.
            sources=Label(of_sources.bits & reach(plan).bits),
            starting_offsets=row.starting_offsets,
        )


def delivery_topics(session: Session, output_id: int) -> frozenset[str]:
    """The topics of the classes that an output is delivered to."""
    return frozenset(row.topic for row in _open_classes(session).get(output_id, ()))


def _open_classes(session: Session) -> Mapping[int, list[DeliveryClass]]:
    """output id -> its classes whose topic is there and that are not closed."""
    query = select(DeliveryClass).where(
        DeliveryClass.opened_at.is_not(None), DeliveryClass.closed_at.is_(None)
    )
    found: dict[int, list[DeliveryClass]] = {}
    for row in session.scalars(query.order_by(DeliveryClass.id)):
        found.setdefault(row.output_id, []).append(row)
    return found


def _fan_out(row: DeliveryClass, output: Relation) -> FanOutClass | None:
    """The class as the runner feeds it; None for one that can never hold anything."""
    label = Label.from_wire(row.clearance)
    if label is None:
        return None  # an unreadable clearance covers nothing
    clearance = Clearance(label.bits).cut_to(output.reach)
    if clearance.bits == 0 and not output.public:
        return None
    return FanOutClass(row.topic, clearance, row.weak)


def _read_by_others(session: Session) -> frozenset[int]:
    """The ids of all relations that a live output's plan reads."""
    query = (
        select(OutputInput.relation_id)
        .join(Object, Object.id == OutputInput.output_id)
        .where(Object.removed_at.is_(None))
    )
    return frozenset(session.scalars(query))


def _relation(data: Mapping[str, object]) -> Relation:
    relation = decode(dict(data))
    if not isinstance(relation, Relation):
        raise ValueError("not a stored relation")
    return relation
