"""Reads the wanted runs from the tables, and writes the reports of engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from catalog.assignments import assigned_to, engine_of, note_change, parked
from catalog.backfills import WantedBackfill, wanted_backfills
from catalog.categories import registered_categories, source_categories
from catalog.clock import epoch_ms
from catalog.delivery import Delivery
from catalog.delivery_classes import delivery_of
from catalog.engines import INGEST
from catalog.executions import executions_of
from catalog.floors import read_floor
from catalog.independent_senders import numbers_of
from catalog.label import PUBLIC, Label, combine
from catalog.label_rule import fixed_texts
from catalog.label_texts import fixed_texts_of, rule_from_stored
from catalog.models import (
    DeliveryClass,
    ExecutionRow,
    Generation,
    Heartbeat,
    Object,
    OutputInput,
    OutputRow,
    RunStatus,
    SenderPolicy,
    SenderRow,
    StreamRow,
    TopicFault,
    Withdrawal,
)
from catalog.output_parts import OutputPart, copies, wanted_parts
from catalog.placement import Placement
from catalog.plan import Plan
from catalog.plan import sources as read_by
from catalog.pulse import heartbeat_of
from catalog.reach import counted_streams
from catalog.reaches import Reaches
from catalog.record_format import RecordFormat
from catalog.relation import Relation
from catalog.role_clauses import RoleClauses
from catalog.run_names import ingest_run_name, query_run_name
from catalog.runs import (
    FanOutClass,
    FedOutput,
    IngestRun,
    IngestStream,
    QueryRun,
    Run,
    RunReport,
    Sender,
    apart,
    fingerprint,
)
from catalog.sender_state import is_ingested
from catalog.store import GENERATION_ID
from catalog.stored_form import from_stored
from catalog.stream_levels import StreamLevels, shown_classes
from catalog.topics import quarantine_topic

NOTHING_APPLIED = -1
_MESSAGE_LENGTH = 2_000


def generation(session: Session) -> int:
    """The number of changes of the wanted runs so far."""
    row = session.get(Generation, GENERATION_ID, populate_existing=True)
    return row.value if row is not None else 0


def wanted_runs(session: Session, engine: str | None = None) -> tuple[Run, ...]:
    """All wanted runs, in an order that depends only on them.

    With the name of an `engine`, only the runs of this engine. A run that writes a topic with an
    unproven withdrawal is left out. It continues later and loses nothing.
    """
    sources = source_categories(session)
    unproven = _unproven_topics(session)
    runs: list[Run] = []
    if engine in (None, INGEST):
        runs += _ingest_runs(session, sources)
    if engine != INGEST:
        runs += _query_runs(session, sources, engine)
    return tuple(run for run in runs if not unproven & _delivers_to(run))


def report_applied(session: Session, engine: str, applied: int) -> None:
    """Note that the engine has reported for each run the topics that it uses in this generation.

    Call it inside `Catalog.bookkeeping`.
    """
    heartbeat_of(session, engine).applied = applied
    session.flush()


def fed_classes(
    session: Session, class_ids: Iterable[int], living: Container[str]
) -> frozenset[int]:
    """Those of the classes that living engines feed. They get all results from now on.

    Two runs feed a class whose output moves to another execution.
    """
    own = DeliveryClass.id.in_(set(class_ids))
    rows = session.scalars(select(DeliveryClass).where(own)).all()
    names = {each for row in rows for each in _run_names(session, row)}
    running = select(RunStatus).where(RunStatus.name.in_(names), RunStatus.state == "running")
    marks = {
        status.name: status.fingerprint
        for status in session.scalars(running.execution_options(populate_existing=True))
        if engine_of(session, status.name) in living
    }
    if not marks:
        return frozenset()
    fed: set[str] = set()
    unfed: set[str] = set()
    for run in wanted_runs(session):
        if isinstance(run, QueryRun) and not names.isdisjoint({run.name}):
            # What is wanted is what is fed.
            applied = marks.get(run.name) == fingerprint(run)
            (fed if applied else unfed).update(each.topic for each in run.classes)
    return frozenset(row.id for row in rows if row.topic in fed - unfed)


def _run_names(session: Session, row: DeliveryClass) -> Iterable[str]:
    """The names of the runs that may feed the class: those of all classes, or of this one."""
    for execution in executions_of(session, [row.output_id]):
        yield query_run_name(execution)
        yield query_run_name(execution, row.id)


def what_classes_take(
    session: Session, class_ids: Collection[int]
) -> Mapping[int, tuple[Delivery, Label]]:
    """What the wanted runs deliver to these classes, by id, and their categories of `source`.

    A class is left out if no run may write its topic now.
    """
    sources, unproven = source_categories(session), _unproven_topics(session)
    return {
        each.id: (each.delivery, run.sources)
        for run in _query_runs(session, sources, None)
        if not unproven & _delivers_to(run)
        for each in run.classes
        if each.id in class_ids
    }


def is_applied(session: Session, name: str) -> bool:
    """Whether the run of ingest with that name runs as it is wanted now, by its last report."""
    status = session.get(RunStatus, name, populate_existing=True)
    if status is None or status.state != "running":
        return False
    wanted = (run for run in wanted_runs(session, INGEST) if run.name == name)
    return any(fingerprint(run) == status.fingerprint for run in wanted)


def report_status(session: Session, report: RunReport, now: datetime) -> None:
    """Store a report on a run. Call it inside `Catalog.bookkeeping`. No message holds data."""
    before = session.get(RunStatus, report.name, populate_existing=True)
    if before is None or before.fingerprint != report.fingerprint:
        note_change(session, report.name)
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
        delivered_ms=report.delivered_ms,
        through=report.through,
    )
    session.merge(status)
    session.flush()


def forget_runs(session: Session, engine: str) -> None:
    """Note that an engine begins and runs nothing yet. Call it inside `Catalog.bookkeeping`."""
    names = list(session.scalars(select(RunStatus.name)))
    own = [name for name in names if engine_of(session, name) == engine]
    said = update(RunStatus).where(RunStatus.name.in_(own))
    session.execute(said.values(state="stopped", message="", topics=[], through=False))
    report_applied(session, engine, NOTHING_APPLIED)


def report_faults(session: Session, engine: str, faults: Mapping[str, str], now: datetime) -> None:
    """Store the faulty topics that the engine found. Call it inside `Catalog.bookkeeping`."""
    own = select(TopicFault).where(TopicFault.engine == engine)
    known = {row.topic: row for row in session.scalars(own)}
    for topic, row in known.items():
        if topic not in faults:
            session.delete(row)
    for topic, reason in faults.items():
        since = known[topic].since if topic in known else now
        session.merge(TopicFault(topic=topic, engine=engine, reason=reason, since=since))
    session.flush()


def is_in_step(session: Session, engine: str | None = None) -> bool:
    """Whether all engines, or this one, have applied the last change of the wanted runs.

    An engine that has ended normally runs nothing, so it counts as in step.
    """
    rows = select(Heartbeat.applied).where(Heartbeat.ended.is_(False))
    if engine is not None:
        rows = rows.where(Heartbeat.engine == engine)
    # If no engine has begun yet, it is in step only if nothing was ever wanted.
    applied = set(session.scalars(rows)) or {0}
    return applied == {generation(session)}


def used_topics(session: Session) -> frozenset[str]:
    """The topics that runs use or are about to use, by the reports of the engines."""
    return frozenset(
        topic for topics in session.scalars(select(RunStatus.topics)) for topic in topics
    )


def _unproven_topics(session: Session) -> frozenset[str]:
    query = select(Withdrawal.topic).where(Withdrawal.done_at.is_(None), Withdrawal.unproven)
    return frozenset(session.scalars(query))


def _delivers_to(run: Run) -> frozenset[str]:
    """The delivery topics that a run writes."""
    if isinstance(run, IngestRun):
        return frozenset(quarantine_topic(stream.relation.name) for stream in run.streams)
    return frozenset(cls.topic for cls in run.classes)


def _ingest_runs(session: Session, sources: Mapping[int, Label]) -> Iterable[IngestRun]:
    query = (
        select(StreamRow)
        .join(Object, Object.id == StreamRow.object_id)
        .where(Object.removed_at.is_(None))
        .order_by(StreamRow.ingest_group, StreamRow.object_id)
    )
    senders = _senders(session)
    texts = fixed_texts_of(session)
    levels = StreamLevels(session)
    for group, rows in groupby(session.scalars(query), key=lambda row: row.ingest_group):
        found = (
            levels.added(
                row,
                _ingest_stream(
                    *(row, sources, senders.get(row.object_id, ()), texts.get(row.object_id, {}))
                ),
            )
            for row in rows
        )
        # A stream to which nobody may send has no topic to read.
        streams = tuple(s for s in found if s is not None and s.senders)
        if streams:
            yield IngestRun(ingest_run_name(group), streams)


def _senders(session: Session) -> Mapping[int, tuple[Sender, ...]]:
    """stream id -> the senders whose topics are read.

    One whose floor cannot be read waits: nobody knows what its tuples should carry.
    """
    query = select(SenderRow).join(StreamRow, StreamRow.object_id == SenderRow.stream_id)
    query = query.where(is_ingested()).order_by(SenderRow.stream_id, SenderRow.id)
    by_stream = groupby(session.scalars(query), key=lambda row: row.stream_id)
    policies = {(row.stream_id, row.user_id): row.text for row in _policies(session)}

    def sender(row: SenderRow) -> Sender | None:
        policy = None if row.user_id is None else policies.get((row.stream_id, row.user_id))
        floor = PUBLIC if row.floor is None or row.lowered else read_floor(row.floor)
        if floor is None:
            return None
        return Sender(row.id, row.topic, policy, row.readmits, floor=floor)

    return {
        id_: tuple(each for each in map(sender, rows) if each is not None)
        for id_, rows in by_stream
    }


def _policies(session: Session) -> Iterable[SenderPolicy]:
    return session.scalars(select(SenderPolicy))


def _ingest_stream(
    row: StreamRow,
    sources: Mapping[int, Label],
    senders: tuple[Sender, ...],
    texts: Mapping[str, Label],
) -> IngestStream | None:
    relation = from_stored(Relation, row.relation)
    if relation.public:
        label = PUBLIC
    elif row.object_id in sources:
        label = sources[row.object_id]
    else:
        # Without its category, a stream's tuples would be public. So it is left out.
        return None
    written = from_stored(RecordFormat, row.record_format)
    ahead_ms, size = row.max_ahead_ms, row.max_bytes
    stream = IngestStream(relation, label, ahead_ms, size, written, row.partitions, senders)
    if row.label_rule is None:
        return stream
    rule = rule_from_stored(row.label_rule)
    fixed = fixed_texts(rule) | {each.policy for each in senders if each.policy is not None}
    known = tuple((text, texts[text]) for text in sorted(fixed) if text in texts)
    return replace(stream, rule=rule, texts=known)


def _query_runs(
    session: Session, sources: Mapping[int, Label], engine: str | None
) -> Iterable[QueryRun]:
    classes = _open_classes(session)
    read = _read_by_others(session)
    of_sources = combine(sources.values())
    reaches = Reaches(session)
    registered = registered_categories(session)
    here = assigned_to(session, engine) if engine is not None else None
    stopped = parked(session)
    copied = copies(session)

    def fed(part: OutputPart) -> FedOutput:
        row = part.output
        output = from_stored(Relation, row.relation)
        own = classes.get(row.object_id, ())
        reached = reaches.of(output)
        found = (_fan_out(cls, output, reached, reaches.clauses) for cls in own)
        taking = tuple(cls for cls in found if cls is not None)
        readers = read.get(row.object_id, frozenset())
        made = FedOutput(
            *(output, taking, bool(readers), row.starting_offsets),
            after_ms=part.after_ms,
            until_ms=part.until_ms,
            moves=part.moves,
        )
        return replace(made, readers=readers, kept_ms=row.retention_ms) if output.keys else made

    def runs_here(execution_id: int) -> bool:
        return execution_id not in stopped and (here is None or execution_id in here)

    def made(
        execution: ExecutionRow, plan: Plan, outputs: tuple[FedOutput, ...], row: OutputRow
    ) -> QueryRun:
        first, reached = row.object_id, reaches.of(outputs[0].relation)
        return QueryRun(
            name=query_run_name(execution.id),
            plan=plan,
            outputs=outputs,
            # Keep only those in reach. Otherwise each new stream would restart every query.
            sources=Label(of_sources.bits & reached.bits),
            starting_offsets=execution.starting_offsets,
            reaches={
                each.object_id: reaches.within_level(first, reaches.of(each))
                for each in read_by(plan)
            },
            independent={each: numbers_of(session, each) for each in counted_streams(plan)},
            registered=registered,
            floor=reaches.floor_of(first),
            conflict_classes=shown_classes(session, plan),
            placement=Placement(row.placement),
            copied_from=None if execution.copy_of is None else query_run_name(execution.copy_of),
            copies=tuple(copied.get(execution.id, ())),
        )

    def backfilling(each: WantedBackfill) -> Iterable[QueryRun]:
        output = from_stored(Relation, each.output.relation)
        own = _fan_out(each.row, output, reaches.of(output), reaches.clauses)
        if own is None:
            return
        plan, begins = from_stored(Plan, each.execution.plan), each.execution.starting_offsets
        fed_output = FedOutput(output, (own,), begins=begins, after_ms=each.after_ms)
        run = made(each.execution, plan, (fed_output,), each.output)
        name = query_run_name(each.execution.id, own.id)
        run = replace(run, name=name, backfill=True, ends=each.ends)
        yield apart(run, own, name, begins) if run.placement is Placement.APART else run

    for each in wanted_backfills(session):
        if runs_here(each.execution.id):
            yield from backfilling(each)
    for execution, found in groupby(wanted_parts(session), key=lambda part: part.execution):
        parts = list(found)
        rows = [part.output for part in parts]
        # The classes of what runs apart may have engines of their own.
        if rows[0].placement != Placement.APART and not runs_here(execution.id):
            continue
        # Equal queries have the same reach and the same level.
        first = rows[0].object_id
        own_plan = execution.plan == rows[0].plan
        plan = reaches.plan_of(first) if own_plan else from_stored(Plan, execution.plan)
        outputs = tuple(map(fed, parts))
        run = made(execution, plan, outputs, rows[0])
        if run.placement is not Placement.APART:
            yield run
            continue
        of_class = {row.id: row for row in classes.get(first, ())}
        for fed_class in outputs[0].classes:
            row = of_class[fed_class.id]
            own = row.execution_id or execution.id
            if runs_here(own):
                begins = row.starting_offsets or execution.starting_offsets
                yield apart(run, fed_class, query_run_name(own, fed_class.id), begins)


def delivery_topics(session: Session, output_id: int) -> frozenset[str]:
    """The delivery topics of an output."""
    return frozenset(row.topic for row in _open_classes(session).get(output_id, ()))


def _open_classes(session: Session) -> Mapping[int, list[DeliveryClass]]:
    """output id -> its classes that are not closed and whose topic exists, without backfills."""
    query = select(DeliveryClass).where(
        DeliveryClass.opened_at.is_not(None),
        DeliveryClass.closed_at.is_(None),
        DeliveryClass.backfills.is_(False),
    )
    found: dict[int, list[DeliveryClass]] = {}
    for row in session.scalars(query.order_by(DeliveryClass.id)):
        found.setdefault(row.output_id, []).append(row)
    return found


def _fan_out(
    row: DeliveryClass, output: Relation, reached: Label, clauses: RoleClauses
) -> FanOutClass | None:
    """The class for its run, or None if the class can never take a result."""
    delivery = delivery_of(row)
    if delivery is None:
        return None
    clearance = clauses.cleared(delivery.clearance).cut_to(reached)
    if clearance.bits == 0 and not output.public:
        return None
    made_ms = 0 if row.opened_at is None else epoch_ms(row.opened_at)
    shown = FanOutClass(
        *(row.topic, clearance, row.weak),
        id=row.id,
        begins=row.starting_offsets or {},
        made_ms=made_ms,
    )
    if delivery.beyond is None:
        # Each way keeps its place, also one that sees nothing.
        return replace(
            shown, ways=tuple(clauses.cleared(way).cut_to(reached) for way in delivery.ways)
        )
    beyond = clauses.cleared(delivery.beyond).cut_to(reached)
    return replace(shown, beyond=beyond) if clearance.bits & ~beyond.bits else None


def _read_by_others(session: Session) -> Mapping[int, frozenset[int]]:
    """relation id -> the ids of the existing outputs whose plans read it."""
    query = (
        select(OutputInput.relation_id, OutputInput.output_id)
        .join(Object, Object.id == OutputInput.output_id)
        .where(Object.removed_at.is_(None))
    )
    found: dict[int, set[int]] = {}
    for relation, output in session.execute(query):
        found.setdefault(relation, set()).add(output)
    return {relation: frozenset(outputs) for relation, outputs in found.items()}
