"""Senders: who may SEND to a stream has a topic of its own there, and a right on no other.

Kafka does not bind the ids of producers to users. So where several write one topic, one can write
in the name of another, and each learns how much the others send. A topic of its own is a sender's
identity: its ACL says who it is, and ingest needs to trust nothing in a record.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping

from sqlalchemy import orm, select

from catalog.admission import ingesting, require_senders
from catalog.limits import Limits
from catalog.models import Object, SenderRow, StreamRow, User
from catalog.sender_state import SenderState
from catalog.senders import with_own_topics
from catalog.topics import in_topic
from secadmin.control.work import Work

_NAME_BYTES = 8
SHARED = "shared"
"""In place of a user's name: the topic that all users of a stream write."""


def settle_senders(work: Work, limits: Limits) -> None:
    """Give each user that may SEND by any role its topics; let others' be drained.

    Call it after a change of who may SEND, before accesses are settled. Who may send again later
    gets another topic. Raises Conflict where there is no room for the new senders.
    """
    session = work.session
    before = ingesting(session)
    wanted = with_own_topics(session)
    active = {(row.stream_id, row.user_id): row for row in _active(session)}
    for pair, row in active.items():
        if pair not in wanted:
            _take(row)
    given = sorted(wanted - active.keys())
    if not given:
        return
    names = _names(session, {stream for stream, _ in given})
    add_senders(work, {pair: names[pair[0]] for pair in given})
    require_senders(session, names.keys(), before, limits)


def add_senders(work: Work, names: Mapping[tuple[int, int | None], str]) -> None:
    """Add senders, each (stream, user or None) with the stream's name; their topics are made."""
    for (stream, user), name in names.items():
        topic = in_topic(name, secrets.token_hex(_NAME_BYTES))
        row = SenderRow(stream_id=stream, user_id=user, topic=topic, state=SenderState.ACTIVE)
        work.session.add(row)
        work.settlement.topics.add(topic)
    work.session.flush()


def shown_senders(session: orm.Session, stream_id: int) -> list[tuple[int, str, str]]:
    """The stream's senders that ingest still reads: id, name of the user, state."""
    query = (
        select(SenderRow.id, User.name, SenderRow.state)
        .outerjoin(User, User.id == SenderRow.user_id)
        .where(SenderRow.stream_id == stream_id, SenderRow.state != SenderState.GONE)
        .order_by(SenderRow.id)
    )
    return [(number, user or SHARED, state) for number, user, state in session.execute(query)]


def _active(session: orm.Session) -> Collection[SenderRow]:
    own = (
        select(SenderRow)
        .join(StreamRow, StreamRow.object_id == SenderRow.stream_id)
        .join(Object, Object.id == SenderRow.stream_id)
        .where(
            SenderRow.state == SenderState.ACTIVE,
            ~StreamRow.shared,
            Object.removed_at.is_(None),
        )
    )
    return session.scalars(own).all()


def _take(row: SenderRow) -> None:
    # Nothing was ever sent to a topic that was not there.
    row.state = SenderState.DRAINING if row.opened_at is not None else SenderState.GONE


def _names(session: orm.Session, streams: Collection[int]) -> dict[int, str]:
    query = select(Object.id, Object.name).where(Object.id.in_(streams))
    return {row.id: row.name for row in session.execute(query)}
