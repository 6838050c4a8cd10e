"""The states of a sender. If its right is revoked, its topic is read to the end, then deleted."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from sqlalchemy import ColumnElement, and_, or_, orm, select, update

from catalog.models import Object, SenderRow, StreamRow, Withdrawal
from catalog.store import bump_generation


class SenderState(StrEnum):
    """The state of a sender and its topic."""

    ACTIVE = "active"
    """Its user may send."""
    DRAINING = "draining"
    """Nobody may write the topic any more. Ingest reads the records that are left."""
    GONE = "gone"
    """Ingest has read all records. The topic is deleted when no run uses it."""


def is_ingested() -> ColumnElement[bool]:
    """The condition on rows of senders and their streams that ingest reads the topic.

    A user's topic in a floored stream waits until ingest may add the user's floor.
    """
    return and_(
        SenderRow.opened_at.is_not(None),
        or_(StreamRow.floored.is_(False), SenderRow.readmits, SenderRow.stamped.is_not(None)),
        SenderRow.state.in_((SenderState.ACTIVE, SenderState.DRAINING)),
    )


def draining(session: orm.Session) -> frozenset[int]:
    """The ids of the draining senders: nobody may write their topics, but ingest reads them."""
    undone = select(Withdrawal.topic).where(Withdrawal.done_at.is_(None))
    drains = select(SenderRow.id).where(
        SenderRow.state == SenderState.DRAINING, SenderRow.topic.not_in(undone)
    )
    return frozenset(session.scalars(drains))


def still_read(session: orm.Session, senders: Collection[int]) -> frozenset[int]:
    """Which of these senders are not gone, and neither is their stream."""
    left = (
        select(SenderRow.id)
        .join(Object, Object.id == SenderRow.stream_id)
        .where(
            SenderRow.id.in_(senders),
            SenderRow.state != SenderState.GONE,
            Object.removed_at.is_(None),
        )
    )
    return frozenset(session.scalars(left))


def unfinished(session: orm.Session, streams: Collection[int]) -> dict[int, frozenset[int]]:
    """The senders of each of these streams that are not gone, also those without a topic so far."""
    found: dict[int, set[int]] = {stream: set() for stream in streams}
    rows = select(SenderRow.stream_id, SenderRow.id).where(
        SenderRow.stream_id.in_(streams), SenderRow.state != SenderState.GONE
    )
    for stream, sender in session.execute(rows):
        found[stream].add(sender)
    return {stream: frozenset(senders) for stream, senders in found.items()}


def report_drained(session: orm.Session, senders: Collection[int]) -> None:
    """Note that ingest has read all of their records. Call it inside `Catalog.bookkeeping`."""
    drained = (SenderRow.id.in_(senders), SenderRow.state == SenderState.DRAINING)
    session.execute(update(SenderRow).where(*drained).values(state=SenderState.GONE))
    bump_generation(session)
