"""Independent senders: the users whose tuples count for a stream's declared aggregate.

The stream's owner says that a user is independent of the others. A declared aggregate counts how
many independent senders a group has. So a sender cannot make a group large enough by sending more.
"""

from __future__ import annotations

from sqlalchemy import and_, orm, select

from catalog.errors import Conflict
from catalog.models import IndependentSender, SenderRow
from catalog.relation import MAX_INDEPENDENT
from catalog.runs import SenderNumbers
from catalog.store import bump_generation


def numbers_of(session: orm.Session, stream: int) -> SenderNumbers:
    """The numbers of the stream's independent senders, by the sender's id.

    It has all senders of a user that counts, the earlier ones too, because their tuples may not
    have been read yet.
    """
    own = and_(
        IndependentSender.stream_id == SenderRow.stream_id,
        IndependentSender.user_id == SenderRow.user_id,
    )
    query = (
        select(SenderRow.id, IndependentSender.number)
        .join(IndependentSender, own)
        .where(SenderRow.stream_id == stream, IndependentSender.counts)
    )
    return {row.id: row.number for row in session.execute(query)}


def independent_users(session: orm.Session, stream: int) -> frozenset[int]:
    """The users that count for the stream's declared aggregate."""
    counting = (IndependentSender.stream_id == stream, IndependentSender.counts)
    return frozenset(session.scalars(select(IndependentSender.user_id).where(*counting)))


def count_user(session: orm.Session, stream: int, user: int) -> None:
    """Let the user count. Raises Conflict if the stream has no number left."""
    row = session.get(IndependentSender, (stream, user))
    if row is None:
        used = session.scalars(
            select(IndependentSender.number).where(IndependentSender.stream_id == stream)
        )
        number = 1 + max(used, default=-1)
        if number >= MAX_INDEPENDENT:
            raise Conflict(
                f"{MAX_INDEPENDENT} users of the stream are or were independent senders, which is "
                "the most there can be; add another stream for the others"
            )
        row = IndependentSender(stream_id=stream, user_id=user, number=number, counts=True)
        session.add(row)
    row.counts = True
    session.flush()
    bump_generation(session)


def leave_out_user(session: orm.Session, stream: int, user: int) -> None:
    """Let the user not count any more. It keeps its number."""
    row = session.get(IndependentSender, (stream, user))
    if row is not None:
        row.counts = False
        session.flush()
        bump_generation(session)
