"""Declared aggregates across queries: who may have one, one query at a time, its whole windows.

Two results over nearly the same tuples reveal the few tuples in which they differ. So only one
live query has a stream's declared aggregate. A window that this query may have seen only in part
keeps the category `source` (DESIGN, the one rule).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import orm, select

from catalog.analysis import analyse
from catalog.category_kind import CategoryKind
from catalog.checked_plan import CheckedPlan
from catalog.errors import Conflict, Denied, InvalidInput
from catalog.label import Label, combine
from catalog.models import CategoryRow, Object, OutputInput, OutputRow, StreamRow
from catalog.permission import Permission
from catalog.plan import Plan, Source, at_sources
from catalog.reach import lowered_streams, reach
from catalog.reaches import Reaches
from catalog.relation import Relation, RelationKind
from catalog.stored_form import from_stored
from secadmin.control.work import Reading

_CLOCKS_APART_MS = 60_000
"""How far the broker's clock may be ahead. By it, ingest refuses tuples from the future."""


def require_alone(
    session: orm.Session, plans: Iterable[Plan], besides: Collection[int] = ()
) -> None:
    """Raise InvalidInput or Conflict if a second output would give a declared aggregate.

    What the outputs `besides` give does not count.
    """
    taken: set[int] = set()
    for plan in plans:
        streams = lowered_streams(plan)
        if streams & taken:
            raise InvalidInput(
                "two outputs of the query give the declared aggregate of one stream; "
                "leave one of them to a query over the other"
            )
        taken |= streams
    others = _live_plans(session, taken, besides)
    if any(streams & taken for streams in map(lowered_streams, others)):
        # The message does not name the query that has it: the caller may not view it.
        raise Conflict(
            "the stream's declared aggregate is in use; ask the stream's owner, or compute "
            "something else"
        )


def require_aggregates(view: Reading, plans: Iterable[Plan]) -> None:
    """Require READ AGGREGATE for a query that gives a declared aggregate, or reads one.

    Only one query at a time has the aggregate, and a query that others read cannot be removed. So a
    user that may not see the aggregate could otherwise keep it from all others. Raises Denied,
    which names no stream, because the caller may not view the stream.
    """
    of = Reaches(view.session).of
    reached = combine(reach(plan, of) for plan in plans)
    for stream in _streams_of(view.session, reached):
        decision = view.authorizer.decide(view.subject, Permission.READ_AGGREGATE, stream)
        view.authorizer.trail.append(decision)
        if not decision.allowed:
            raise Denied(
                "the query gives a stream's declared aggregate, or reads an output that does; "
                f"that needs {Permission.READ_AGGREGATE} on the stream, which its owner grants, "
                "and no right to send to it"
            )


def seen_from(
    session: orm.Session,
    read: Iterable[Relation],
    offsets: Mapping[str, Mapping[str, int]],
    now: datetime,
) -> Mapping[int, int]:
    """From which event time on a query sees all tuples, in ms, by the ids of the streams it reads.

    The query is added now and reads lab topics from these offsets. It misses tuples that came
    earlier. Their event time is at most as far ahead of the clock as the stream allows. A stream
    that had no tuple yet is not in the result.
    """
    now_ms = int(now.replace(tzinfo=UTC).timestamp() * 1000)
    return {
        stream.object_id: now_ms + ahead_ms + _CLOCKS_APART_MS
        for stream in read
        if stream.kind is RelationKind.STREAM and any(offsets[stream.topic].values())
        for ahead_ms in [session.get_one(StreamRow, stream.object_id).max_ahead_ms]
    }


def with_whole_windows(plan: Plan, since_ms: Mapping[int, int]) -> Plan:
    """The plan that gives declared aggregates of whole windows only; `since_ms` is of `seen_from`.

    A window that begins earlier keeps the category `source`.
    """

    def seen(source: Source) -> Source:
        relation = source.relation
        if relation.declared is None or relation.object_id not in since_ms:
            return source
        declared = replace(relation.declared, since_ms=since_ms[relation.object_id])
        return replace(source, relation=replace(relation, declared=declared))

    return at_sources(plan, seen)


def undeclared(checked: CheckedPlan) -> CheckedPlan:
    """The plan over streams of which nothing is declared, so it lowers no label.

    With semantics `view` each class has groups of its own. A class that holds the category
    `aggregated` alone sees no tuple, so there is nothing to lower.
    """

    def plain(source: Source) -> Source:
        return replace(source, relation=replace(source.relation, declared=None))

    return analyse(at_sources(checked.plan, plain))


def _live_plans(
    session: orm.Session, streams: Iterable[int], besides: Collection[int]
) -> Iterable[Plan]:
    """The plans of live outputs, without those `besides`, that read one of the streams."""
    rows = (
        select(OutputRow)
        .join(Object, Object.id == OutputRow.object_id)
        .join(OutputInput, OutputInput.output_id == OutputRow.object_id)
        .where(OutputInput.relation_id.in_(list(streams)), Object.removed_at.is_(None))
        .where(OutputRow.object_id.not_in(besides))
    )
    return (from_stored(Plan, row.plan) for row in session.scalars(rows))


def _streams_of(session: orm.Session, reached: Label) -> list[Object]:
    """The streams whose category `aggregated` is one of these."""
    found = (
        select(Object)
        .join(CategoryRow, CategoryRow.stream_id == Object.id)
        .where(
            CategoryRow.kind == CategoryKind.AGGREGATED, CategoryRow.bit.in_(reached.categories())
        )
    )
    return list(session.scalars(found.order_by(Object.id)))
