"""Who is kept out of a declared aggregate because it could send to the stream, and telling so.

A grant, a role given to a user or a junior role can so take something away. Who does it is warned;
the accesses that it touches are settled, and fenced, as in a revocation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from sqlalchemy import orm, select

from catalog.models import CategoryRow, Grant, Membership, Object
from catalog.permission import Permission
from catalog.roles import juniors_of, seniors_of
from secadmin.control.work import Reading

KeptOut = frozenset[tuple[int, int]]
"""Pairs of a user and the stream whose declared aggregate it holds a grant of and is not shown."""

_READ = (Permission.READ_AGGREGATE, Permission.READ_TUPLE)
CONCERNED = frozenset({*_READ, Permission.SEND})
"""The permissions whose grants can keep somebody out."""
_ON_DECLARED = (
    select(Grant.role_id, Grant.permission, Grant.object_id)
    .join(CategoryRow, CategoryRow.stream_id == Grant.object_id)
    .join(Object, Object.id == Grant.object_id)
    .where(
        CategoryRow.kind == "aggregated",
        Object.removed_at.is_(None),
        Grant.permission.in_(CONCERNED),
    )
)


def members_of(session: orm.Session, role_id: int) -> frozenset[int]:
    """The users that could activate the role, itself or a senior one."""
    holders = seniors_of(session, [role_id]).get(role_id, frozenset())
    members = select(Membership.user_id).where(Membership.role_id.in_(holders))
    return frozenset(session.scalars(members))


def kept_out(session: orm.Session, users: Collection[int]) -> KeptOut:
    """Of these users, who could both send to a stream and read its declared aggregate."""
    on_declared: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for role, permission, stream in session.execute(_ON_DECLARED):
        on_declared[role].append((permission, stream))
    if not on_declared:
        return frozenset()
    held: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
    memberships = session.execute(select(Membership.user_id, Membership.role_id)).all()
    juniors = juniors_of(session, {row.role_id for row in memberships})
    for user, role in memberships:
        if user in users:
            for junior in juniors[role]:
                held[user].update(on_declared.get(junior, ()))
    return frozenset(
        (user, stream)
        for user, grants in held.items()
        for permission, stream in grants
        if permission == Permission.SEND and any((read, stream) in grants for read in _READ)
    )


def warnings_of(view: Reading, pairs: Iterable[tuple[int, int]]) -> list[str]:
    """A line for each stream; one that the caller may not view is not named."""
    streams = {stream for _, stream in pairs}
    objects = [view.session.get_one(Object, stream) for stream in streams]
    named = sorted(obj.name for obj in objects if view.may_view(obj))
    lines = [f"stream {name}" for name in named]
    if len(named) < len(objects):
        lines.append("a stream that you may not view")
    return [
        f"{line}: who could send to it is not shown its declared aggregate, "
        "so somebody does not get it, or gets it no more"
        for line in lines
    ]
