"""Merges queries anew after policies have changed what their roles see (002 §3.3, 003 §IV).

A query's outputs get executions that begin at the change, with empty state: what a plan keeps of
tuples that are hidden now is in no result. The outputs with their names, ids and subscriptions
stay. What cannot be merged any more stops, with the reason.

A query over the output of another one that waits comes after that one, and begins behind all that
the old plan has written: so nothing of an old view reaches it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import ColumnElement, and_, orm, select

from catalog.audit import PLATFORM
from catalog.authorizer import Authorizer
from catalog.error_places import places_of
from catalog.errors import Denied, InvalidInput, PlatformError, Unavailable
from catalog.executions import leave
from catalog.label import Label
from catalog.models import Object, OutputInput, OutputRow, QueryRow, RunStatus
from catalog.placement import Placement
from catalog.plan import sources
from catalog.query_roles import chosen_roles
from catalog.relation import RelationKind
from catalog.run_names import execution_of
from catalog.store import Change
from catalog.subject import subject_with_roles
from catalog.topics import lab_topic
from catalog.wanted import is_in_step
from secadmin.control import declared
from secadmin.control.changed_views import close_classes, note_changed
from secadmin.control.platform import Platform
from secadmin.control.prepared_query import PreparedQuery, prepare_again
from secadmin.control.query_definition import QueryDefinition
from secadmin.control.query_rights import ViewChange, change_of_views
from secadmin.control.query_views import DOES_NOT_FIT, outputs_of
from secadmin.control.settlement import Settlement, of_objects
from secadmin.control.stored_outputs import Beginning, store_outputs
from secadmin.control.visible_relations import VisibleRelations
from secadmin.control.work import Reading

log = logging.getLogger(__name__)
ACTION = "merge query anew"
_REASON_LENGTH = 200
_Offsets = Mapping[str, Mapping[str, int]]


class _ChangedMeanwhileError(Exception):
    """Nothing is done: the query is looked at again."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A query that waits since then, as its owner sees it."""

    query: QueryRow
    object: Object
    since: datetime
    view: Reading

    @property
    def outputs(self) -> Mapping[str, Object]:
        """Its live outputs by name."""
        return {each.name: each for each in outputs_of(self.view, self.object)}

    @property
    def output_ids(self) -> list[int]:
        """Their ids."""
        return [each.id for each in self.outputs.values()]


def merge_changed(platform: Platform) -> None:
    """Merge all queries that wait for it anew, as far as they can be merged now.

    Raises the first failure of Kafka when all were tried.
    """
    own = select(QueryRow.object_id).join(Object, Object.id == QueryRow.object_id)
    with platform.catalog.read() as session:
        # A query is younger than what it reads.
        waiting = session.scalars(own.where(_waits()).order_by(QueryRow.object_id)).all()
    failures: list[PlatformError] = []
    for query_id in waiting:
        try:
            _merge(platform, query_id)
        except _ChangedMeanwhileError:
            continue
        except PlatformError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def _waits() -> ColumnElement[bool]:
    noted = and_(QueryRow.running, QueryRow.views_changed_at.is_not(None))
    return and_(noted, Object.removed_at.is_(None))


def _merge(platform: Platform, query_id: int) -> None:
    with platform.catalog.read() as session:
        waiting = _found(session, query_id)
        if not _may_begin(session, waiting):
            return
        try:
            prepared: PreparedQuery | str = _prepared(platform, waiting)
        except Unavailable:
            raise
        except Exception as error:  # what is not surely right does not run
            prepared = _reason(error)
    if isinstance(prepared, str):
        _stop(platform, query_id, waiting.since, prepared)
        return
    offsets = _offsets(platform, prepared, waiting.since)
    try:
        told = _begin(platform, query_id, waiting.since, prepared, offsets)
    except Unavailable:
        raise
    except PlatformError as refusal:
        _stop(platform, query_id, waiting.since, _reason(refusal))
    else:
        platform.alignment.align(told)


def _reason(error: Exception) -> str:
    if isinstance(error, PlatformError):
        return error.detail
    log.error("a query cannot be merged anew: %s", places_of(error))
    return "it cannot be merged; see the log of SecAdmin"


def _found(session: orm.Session, query_id: int, since: datetime | None = None) -> _Waiting:
    """The query, if it waits (since then). Raises _ChangedMeanwhileError."""
    own = select(QueryRow, Object).join(Object, Object.id == QueryRow.object_id)
    row = session.execute(own.where(QueryRow.object_id == query_id, _waits())).one_or_none()
    at = None if row is None else row.QueryRow.views_changed_at
    if row is None or at is None or row.Object.owner is None or since not in (None, at):
        raise _ChangedMeanwhileError
    query, obj = row.QueryRow, row.Object
    subject = subject_with_roles(session, obj.owner, [role.id for role in query.roles])
    return _Waiting(query, obj, at, Reading(session, subject, Authorizer(session)))


def _may_begin(session: orm.Session, waiting: _Waiting) -> bool:
    """Whether nothing that it reads waits itself, and nothing of its old plans reaches a reader."""
    read = select(OutputInput.relation_id).where(OutputInput.output_id.in_(waiting.output_ids))
    below = (
        select(QueryRow.object_id)
        .join(OutputRow, OutputRow.query_id == QueryRow.object_id)
        .where(OutputRow.object_id.in_(read), QueryRow.views_changed_at.is_not(None))
    )
    if session.scalar(below.limit(1)) is not None:
        return False
    return not any(map(partial(_is_written, session), waiting.outputs.values()))


def _is_written(session: orm.Session, output: Object) -> bool:
    """Whether a run may still write lab.<output>, and somebody reads that, or did."""
    over = select(OutputInput.output_id).where(OutputInput.relation_id == output.id)
    reading = select(OutputRow.execution_id).where(OutputRow.object_id.in_(over))
    readers = set(session.scalars(reading))
    if not readers:
        return False
    if not is_in_step(session):
        # An engine may be about to start what was wanted before.
        return True
    live = select(RunStatus.name, RunStatus.topics).where(RunStatus.state != "stopped")
    return any(
        lab_topic(output.name) in topics and execution_of(name) not in readers
        for name, topics in session.execute(live)
    )


def _prepared(platform: Platform, waiting: _Waiting) -> PreparedQuery:
    """The query merged with what its roles see now. Raises PlatformError if that cannot be."""
    query, outputs = waiting.query, waiting.outputs
    rows = [waiting.view.session.get_one(OutputRow, each.id) for each in outputs.values()]
    wanted = QueryDefinition(
        waiting.object.name,
        query.language,
        query.text,
        output=None if query.language == "borealis" else next(iter(outputs)),
        semantics=Placement(rows[0].placement).semantics,
    )
    prepared = prepare_again(platform, waiting.view, wanted, chosen_roles(query))
    if prepared.checked.keys() != outputs.keys():
        raise InvalidInput("its text gives other outputs than it had")
    if rows[0].level is not None:
        prepared.relations.level = Label.from_wire(rows[0].level)
        if prepared.relations.level is None:
            raise Denied("its level cannot be read")
    return prepared


def _offsets(platform: Platform, prepared: PreparedQuery, since: datetime) -> _Offsets:
    """Where the new executions begin: at the change, and behind what old plans have written."""
    read = {each for plan in prepared.plans.values() for each in sources(plan)}
    streams = sorted({each.topic for each in read if each.kind is RelationKind.STREAM})
    outputs = sorted({each.topic for each in read} - {*streams})
    kafka = platform.kafka
    return {
        **(kafka.offsets_at(streams, since) if streams else {}),
        **(kafka.end_offsets(outputs) if outputs else {}),
    }


def _begin(
    platform: Platform,
    query_id: int,
    since: datetime,
    prepared: PreparedQuery,
    offsets: _Offsets,
) -> set[str]:
    """Store the new plans and executions. Gives the topics that Kafka must be told about."""
    with platform.catalog.change(PLATFORM) as change:
        session = change.session
        waiting = _found(session, query_id, since)
        relations = _same_relations(waiting, prepared)
        outputs, ids = waiting.outputs, waiting.output_ids
        declared.require_alone(session, prepared.plans.values(), besides=ids)
        placement = Placement(session.get_one(OutputRow, ids[0]).placement)
        wider = change_of_views(session, waiting.query, ids) is not ViewChange.OTHER
        noted = note_changed(session, ids, change.now, wider=wider)
        topics: set[str] = set()
        if not wider:
            # While it waits, all is cut. So no new class gets what an old one lacks.
            _settle(change, noted, topics)
        checked = {outputs[name]: each for name, each in prepared.checked.items()}
        begin = Beginning(relations, placement, offsets, since)
        store_outputs(platform, session, query_id, checked, begin)
        close_classes(session, ids, change.now)
        session.refresh(waiting.query)
        waiting.query.views_changed_at = None
        session.flush()
        _settle(change, noted, topics)
        change.audit(ACTION, f"query {waiting.object.name}", detail={"outputs": ids})
    return topics


def _same_relations(waiting: _Waiting, prepared: PreparedQuery) -> VisibleRelations:
    """What the query reads, looked up again. Raises _ChangedMeanwhileError if it has changed."""
    before = prepared.relations
    relations = VisibleRelations(waiting.view, before.as_roles, before.level)
    try:
        for name in before.named:
            relations.relation(name)
    except PlatformError as refusal:
        raise _ChangedMeanwhileError from refusal
    if (relations.named, relations.viewed) != (before.named, before.viewed):
        raise _ChangedMeanwhileError
    return relations


def _settle(change: Change, output_ids: frozenset[int], topics: set[str]) -> None:
    Settlement(change, change.now, topics).settle(of_objects(*output_ids))


def _stop(platform: Platform, query_id: int, since: datetime, reason: str) -> None:
    """Stop a query that cannot be merged any more."""
    with platform.catalog.change(PLATFORM) as change:
        waiting = _found(change.session, query_id, since)
        query, name = waiting.query, waiting.object.name
        query.running = False
        query.stopped_because = f"{DOES_NOT_FIT}: {reason}"[:_REASON_LENGTH]
        leave(change.session, waiting.output_ids, change.now)
        change.bump_generation()
        detail = {"stopped": waiting.output_ids}
        change.audit(ACTION, f"query {name}", reason=query.stopped_because, detail=detail)
