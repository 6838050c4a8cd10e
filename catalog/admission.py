"""Whether the engine can carry a query: decided when it is added or started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sized

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from catalog.errors import Conflict, InvalidInput
from catalog.limits import Limits
from catalog.models import Object, OutputRow, QueryRow, SenderRow, StreamRow
from catalog.plan import Aggregate, Plan, Source, walk
from catalog.sender_state import SenderState


def require_admissible(plan: Plan, limits: Limits) -> None:
    """Raise InvalidInput, saying what would fit, for a plan that is too much by itself."""
    sources = sum(isinstance(node, Source) for node in walk(plan))
    if sources > limits.sources:
        raise InvalidInput(
            f"the query reads streams and outputs {sources} times, and may {limits.sources} "
            "times, one that is read twice counted twice; make a part of it a query of its own "
            "and read its output"
        )
    windows = [node.window for node in walk(plan) if isinstance(node, Aggregate)]
    copies = sum(window.size_ms // window.slide_ms for window in windows)
    if copies > limits.window_copies:
        raise InvalidInput(
            f"a tuple would be in {copies} windows at once, and may be in {limits.window_copies} "
            "of a query: use a longer slide or a shorter window"
        )


def slots_of(plan: Plan, partitions: Mapping[str, Sized]) -> int:
    """How many tasks the sources of a plan take; `partitions` are those of each topic it reads."""
    return sum(
        len(partitions[node.relation.topic]) for node in walk(plan) if isinstance(node, Source)
    )


def require_slots(session: Session, wanted: int, limits: Limits) -> None:
    """Raise Conflict where so many more tasks do not fit beside those of all that runs."""
    taken = ingesting(session) + _querying(session)
    if taken + wanted > limits.slots:
        raise Conflict(
            f"the engine is full: the query takes {wanted} tasks, one for each partition of each "
            f"of its sources, and {max(0, limits.slots - taken)} of {limits.slots} are free; "
            "stop another query first, or read fewer partitions"
        )


def require_senders(
    session: Session, streams: Collection[int], before: int, limits: Limits
) -> None:
    """Raise Conflict where a change gave senders to these streams for which there is no room.

    Call it when the new rows are there; `before` is what `ingesting` was.
    """
    counts = (
        select(Object.name, func.count())
        .join(SenderRow, SenderRow.stream_id == Object.id)
        .where(SenderRow.state == SenderState.ACTIVE, Object.id.in_(streams))
        .group_by(Object.id, Object.name)
        .having(func.count() > limits.senders)
        .order_by(Object.name)
    )
    for name, count in session.execute(counts):
        raise Conflict(
            f"the stream {name} would have {count} senders, and may have {limits.senders}: let "
            "fewer users SEND there, or add a stream with --senders shared, where all users write "
            "one topic"
        )
    more = ingesting(session) - before
    taken = before + _querying(session)
    if more > 0 and taken + more > limits.slots:
        raise Conflict(
            f"the engine is full: the new senders take {more} tasks, one for each partition of "
            f"the stream, and {max(0, limits.slots - taken)} of {limits.slots} are free; stop a "
            "query first, let fewer users SEND, or add a stream with --senders shared"
        )


def ingesting(session: Session) -> int:
    """How many tasks ingest takes: each topic of a sender, and one at least of each stream."""
    return sum(ingesting_by_group(session).values())


def ingesting_by_group(session: Session) -> Counter[int]:
    """How many tasks each group of ingest takes."""
    counted = (SenderRow.stream_id == StreamRow.object_id, SenderRow.state != SenderState.GONE)
    of_each = (
        select(StreamRow.ingest_group, StreamRow.partitions, func.count(SenderRow.id))
        .join(Object, Object.id == StreamRow.object_id)
        .outerjoin(SenderRow, and_(*counted))
        .where(Object.removed_at.is_(None))
        .group_by(StreamRow.object_id, StreamRow.ingest_group, StreamRow.partitions)
    )
    found: Counter[int] = Counter()
    for group, partitions, senders in session.execute(of_each):
        found[group] += partitions * max(1, senders)
    return found


def _querying(session: Session) -> int:
    slots = (
        select(func.sum(OutputRow.slots))
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Object, Object.id == OutputRow.object_id)
        .where(QueryRow.running, Object.removed_at.is_(None))
    )
    return session.scalar(slots) or 0
