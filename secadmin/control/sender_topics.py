"""Senders: a user that may SEND to a stream has its own topic there, and no right on another one.

Kafka does not bind producer ids to users. If several users write one topic, a user can write in the
name of another, and each learns how much the others send. So a sender's topic is its identity: the
topic's ACL says who the sender is, and ingest does not need to trust anything in a record.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import orm, select

from catalog.admission import ingesting, require_senders
from catalog.independent_senders import independent_users
from catalog.limits import Limits
from catalog.models import Object, SenderRow, StreamRow, User
from catalog.sender_state import SenderState
from catalog.senders import with_own_topics
from catalog.topics import in_topic
from secadmin.control.floors import begin_floors
from secadmin.control.work import Work

_NAME_BYTES = 8
SHARED = "shared"
"""Used instead of a user's name for the topic that all users of a stream write."""


def settle_senders(work: Work, limits: Limits) -> None:
    """Give its topics to each user that may SEND by any role, and let the topics of others drain.

    Call it after a change of the right to SEND, before accesses are settled. A user that may send
    again later gets another topic. Raises Conflict if there is no room for the new senders.
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


def add_senders(
    work: Work, names: Mapping[tuple[int, int | None], str], *, readmits: bool = False
) -> None:
    """Add senders (stream, user or None), each with the stream's name, and make their topics.

    Only the platform writes the topic of one that `readmits`.
    """
    rows: list[SenderRow] = []
    for (stream, user), name in names.items():
        topic = in_topic(name, secrets.token_hex(_NAME_BYTES))
        row = SenderRow(
            stream_id=stream,
            user_id=user,
            topic=topic,
            state=SenderState.ACTIVE,
            readmits=readmits,
        )
        work.session.add(row)
        rows.append(row)
        work.settlement.topics.add(topic)
    begin_floors(work.session, [] if readmits else rows)
    work.session.flush()


@dataclass(frozen=True, slots=True)
class ShownSender:
    """A sender that ingest still reads. `user` is SHARED for the topic that all users write.

    `independent` says whether it counts for the minimum of the stream's declared aggregate.
    """

    id: int
    user: str
    state: str
    independent: bool


def shown_senders(session: orm.Session, stream_id: int) -> list[ShownSender]:
    """The stream's senders that ingest still reads."""
    query = (
        select(SenderRow.id, User.name, SenderRow.state, SenderRow.user_id)
        .outerjoin(User, User.id == SenderRow.user_id)
        .where(SenderRow.stream_id == stream_id, SenderRow.state != SenderState.GONE)
        .where(~SenderRow.readmits)
        .order_by(SenderRow.id)
    )
    counting = independent_users(session, stream_id)
    return [
        ShownSender(row.id, row.name or SHARED, row.state, row.user_id in counting)
        for row in session.execute(query)
    ]


def _active(session: orm.Session) -> Collection[SenderRow]:
    own = (
        select(SenderRow)
        .join(StreamRow, StreamRow.object_id == SenderRow.stream_id)
        .join(Object, Object.id == SenderRow.stream_id)
        .where(
            SenderRow.state == SenderState.ACTIVE,
            ~StreamRow.shared,
            ~SenderRow.readmits,
            Object.removed_at.is_(None),
        )
    )
    return session.scalars(own).all()


def _take(row: SenderRow) -> None:
    # A topic that was never made holds no records.
    row.state = SenderState.DRAINING if row.opened_at is not None else SenderState.GONE


def _names(session: orm.Session, streams: Collection[int]) -> dict[int, str]:
    query = select(Object.id, Object.name).where(Object.id.in_(streams))
    return {row.id: row.name for row in session.execute(query)}
