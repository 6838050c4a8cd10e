"""Finds the users that may SEND by any role, active or not.

Such a user has a topic, and may not see the stream's declared aggregate. A user that has sent all
tuples of a group but one could compute that one from the group's aggregate. Tuples do not say who
sent them, so READ AGGREGATE never counts for a user that may SEND, in any session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sqlalchemy import CTE, ColumnElement, Select, and_, bindparam, orm, select
from sqlalchemy.orm import aliased

from catalog.category_kind import CategoryKind
from catalog.models import CategoryRow, Grant, Membership, Object, Role, Seniority, StreamRow
from catalog.permission import Permission
from catalog.roles import juniors_of, seniors_of

NOWHERE: Mapping[int, str] = MappingProxyType({})
"""The value for a user that may send to no stream with a declared aggregate."""


def _held(which: ColumnElement[bool]) -> CTE:
    """(user, role) of the memberships that `which` selects, and of all juniors of these roles."""
    own = select(Membership.user_id, Membership.role_id).where(which)
    held = own.cte("held", recursive=True)
    # UNION, not UNION ALL: it ends even on a graph with a cycle, should one ever get in.
    return held.union(
        select(held.c.user_id, Seniority.junior_id).join(
            Seniority, Seniority.senior_id == held.c.role_id
        )
    )


def _aggregated(stream: orm.InstrumentedAttribute[int]) -> ColumnElement[bool]:
    """Whether the stream has a declared aggregate. Only there are rights of senders limited."""
    declared = select(CategoryRow.stream_id).where(CategoryRow.kind == CategoryKind.AGGREGATED)
    return stream.in_(declared)


def _sending(held: CTE) -> Select[int, int, str]:
    """(user, stream, name of a role) for each stream where the role gives the user SEND."""
    return (
        select(held.c.user_id, Grant.object_id, Role.name)
        .join(Grant, Grant.role_id == held.c.role_id)
        .join(Role, Role.id == Grant.role_id)
        .where(Grant.permission == Permission.SEND, _aggregated(Grant.object_id))
        .order_by(Role.name.desc())
    )


def _with_own_topics() -> Select[int, int]:
    """(stream, user) for all users that may send to a stream where senders have own topics."""
    granted = (
        select(Grant.object_id, Grant.role_id)
        .join(StreamRow, StreamRow.object_id == Grant.object_id)
        .join(Object, Object.id == Grant.object_id)
        .where(Grant.permission == Permission.SEND, ~StreamRow.shared, Object.removed_at.is_(None))
        .cte("sending", recursive=True)
    )
    roles = granted.union(
        select(granted.c.object_id, Seniority.senior_id).join(
            Seniority, Seniority.junior_id == granted.c.role_id
        )
    )
    members = select(roles.c.object_id, Membership.user_id)
    return members.join(Membership, Membership.role_id == roles.c.role_id).distinct()


# Statements are built once, because building one takes longer than running it.
_SENDING = _sending(_held(Membership.user_id.in_(bindparam("users"))))
_WITH_OWN_TOPICS = _with_own_topics()


def with_own_topics(session: orm.Session) -> frozenset[tuple[int, int]]:
    """(stream, user) for each user that needs its own topic in a stream. It takes one query."""
    return frozenset((stream, user) for stream, user in session.execute(_WITH_OWN_TOPICS))


def sent_to(session: orm.Session, users: Iterable[int]) -> Mapping[int, Mapping[int, str]]:
    """By user, the streams with a declared aggregate to which it may SEND by any of its roles.

    Each stream has the name of the first role that gives SEND. Users without such a stream are left
    out. It takes one query.
    """
    found: dict[int, dict[int, str]] = {}
    for user, stream, role in session.execute(_SENDING, {"users": sorted(set(users))}):
        found.setdefault(user, {})[stream] = role
    return found


def kept_from_aggregates(
    session: orm.Session, role: int, members_of: int, user: int | None = None
) -> tuple[Object, ...]:
    """The names of streams whose declared aggregate a user may not see because it may SEND there.

    They are streams on which `role` or a junior holds either permission. The users are those that
    have the role `members_of` or a senior role of it, or only `user`.
    """
    seniors = seniors_of(session, [members_of]).get(members_of, frozenset())
    members = select(Membership.user_id).where(Membership.role_id.in_(seniors))
    chosen = Membership.user_id.in_(members) if user is None else Membership.user_id == user
    held = _held(chosen)
    sends, reads, reader = aliased(Grant), aliased(Grant), held.alias()
    both = (
        select(sends.object_id)
        .join(held, held.c.role_id == sends.role_id)
        .join(reads, reads.object_id == sends.object_id)
        .join(reader, and_(reader.c.role_id == reads.role_id, reader.c.user_id == held.c.user_id))
        .where(
            sends.permission == Permission.SEND,
            reads.permission == Permission.READ_AGGREGATE,
            _aggregated(sends.object_id),
        )
    )
    given = select(Grant.object_id).where(
        Grant.role_id.in_(juniors_of(session, [role]).get(role, frozenset())),
        Grant.permission.in_((Permission.SEND, Permission.READ_AGGREGATE)),
    )
    streams = select(Object).where(Object.id.in_(both), Object.id.in_(given))
    return tuple(session.scalars(streams.where(Object.removed_at.is_(None)).order_by(Object.name)))
