"""Subjects: who asks, with which roles (OxRBAC, 004 §2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import and_, bindparam, exists, or_, orm, select

from catalog.models import Access, AccessRole, Membership, Session, SessionRole, User
from catalog.roles import Closure, juniors_from, juniors_with_names, read_closure

_HELD_BY_USER = juniors_from(
    select(Membership.role_id).where(Membership.user_id == bindparam("user_id"))
)
_HELD_BY_USERS = select(Membership.user_id, Membership.role_id).where(
    Membership.user_id.in_(bindparam("users"))
)
_HELD_IN_SESSION = juniors_from(
    select(SessionRole.role_id)
    .join(Session, Session.id == SessionRole.session_id)
    .join(
        Membership,
        and_(Membership.user_id == Session.user_id, Membership.role_id == SessionRole.role_id),
    )
    .where(SessionRole.session_id == bindparam("session_id"))
)
_HELD_BY_ACCESSES = (
    select(AccessRole.access_id, AccessRole.role_id)
    .join(Access, Access.id == AccessRole.access_id)
    .join(
        Membership,
        and_(Membership.user_id == Access.user_id, Membership.role_id == AccessRole.role_id),
    )
    .where(
        AccessRole.access_id.in_(bindparam("accesses")),
        or_(
            Access.session_id.is_(None),
            exists().where(
                SessionRole.session_id == Access.session_id,
                SessionRole.role_id == AccessRole.role_id,
            ),
        ),
    )
)
# Those that have not ended; one whose time is over may still be among them.
_OPEN_SESSIONS = select(Session.id, Session.expires_at).where(
    Session.id.in_(bindparam("sessions")), Session.ended_at.is_(None)
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A user with the roles that count now.

    `active_role_ids` are those that were activated, `role_ids` these and all their juniors;
    `role_names` names each of `role_ids`; `through` gives for a junior the active role that it is
    held through. `could_hold` are all roles that the user could activate, with their juniors: what
    it can do in another session counts where it would tell more in this one. `barred` says why
    nothing at all is allowed (the user is locked, ...), not even by ownership; None where the roles
    and ownership decide. `session_id` is None for an access that outlives its session.
    """

    user_id: int
    user_name: str
    active_role_ids: frozenset[int] = frozenset()
    role_ids: frozenset[int] = frozenset()
    role_names: Mapping[int, str] = field(default_factory=dict, hash=False)
    through: Mapping[int, str] = field(default_factory=dict, hash=False)
    session_id: int | None = None
    barred: str | None = None
    # Without a default: who makes a subject must say it, or a right to send could go unseen.
    could_hold: frozenset[int] = field(kw_only=True)


def subject_of_session(session: orm.Session, login: Session) -> Subject:
    """The subject of a session row.

    A role that the user no longer holds does not count. A locked user, an ended session, and a
    one-time password that was not changed yet bar everything.
    """
    barred = None
    if login.ended_at is not None:
        barred = "the session has ended"
    elif login.user.must_change_password:
        barred = "the one-time password must be changed first"
    active = read_closure(session, _HELD_IN_SESSION, session_id=login.id)
    could = _all_of(read_closure(session, _HELD_BY_USER, user_id=login.user_id))
    return _subject(login.user, login.id, barred, frozenset(active.members), active, could)


def subject_of_user(session: orm.Session, user: User) -> Subject:
    """What the user would be with all of its roles active: for `explain`."""
    held = read_closure(session, _HELD_BY_USER, user_id=user.id)
    return _subject(user, None, None, frozenset(held.members), held, _all_of(held))


def subjects_of_accesses(
    session: orm.Session, accesses: Sequence[Access], now: datetime
) -> tuple[Subject, ...]:
    """The subjects of access rows, in their order: the user with the roles of the access.

    Of these only those count that the user still holds and, where the access belongs to a session,
    that are still active in it. What ended, or whose session's time is over at `now`, bars
    everything. A handful of queries, however many accesses there are.
    """
    if not accesses:
        return ()
    held: dict[int, set[int]] = {access.id: set() for access in accesses}
    for access_id, role_id in session.execute(_HELD_BY_ACCESSES, {"accesses": list(held)}):
        held[access_id].add(role_id)
    ends = _ends_of_open_sessions(session, accesses)
    of_users: dict[int, set[int]] = {access.user_id: set() for access in accesses}
    for user_id, role_id in session.execute(_HELD_BY_USERS, {"users": list(of_users)}):
        of_users[user_id].add(role_id)
    juniors = juniors_with_names(session, set().union(*of_users.values()))
    could = {user: _with_juniors(roles, juniors) for user, roles in of_users.items()}
    return tuple(
        _subject(
            access.user,
            access.session_id,
            _bar(access, ends, now),
            frozenset(held[access.id]),
            juniors,
            could[access.user_id],
        )
        for access in accesses
    )


def _ends_of_open_sessions(
    session: orm.Session, accesses: Sequence[Access]
) -> Mapping[int, datetime]:
    """By session, of those of the accesses that have not ended, when their time is over."""
    wanted = {access.session_id for access in accesses if access.session_id is not None}
    if not wanted:
        return {}
    rows = session.execute(_OPEN_SESSIONS, {"sessions": list(wanted)})
    return {row.id: row.expires_at for row in rows}


def _bar(access: Access, ends: Mapping[int, datetime], now: datetime) -> str | None:
    """Why the access counts for nothing, if it does."""
    if access.ended_at is not None:
        return "the access has ended"
    if access.session_id is not None:
        ends_at = ends.get(access.session_id)
        if ends_at is None or ends_at <= now:
            return "the session has ended"
    return None


def _with_juniors(roles: Iterable[int], juniors: Closure) -> frozenset[int]:
    return frozenset[int]().union(*(juniors.members[role] for role in roles))


def _all_of(held: Closure) -> frozenset[int]:
    return _with_juniors(held.members, held)


def _subject(
    user: User,
    session_id: int | None,
    barred: str | None,
    held: frozenset[int],
    juniors: Closure,
    could_hold: frozenset[int],
) -> Subject:
    """The subject with the active roles `held`, all of which are in `juniors`."""
    barred = "the user is locked" if user.locked else barred
    closure, names = juniors.members, juniors.names
    active = held if barred is None else frozenset()
    through: dict[int, str] = {}
    for senior in sorted(active, key=lambda role: names[role]):
        for junior in closure[senior] - active:
            through.setdefault(junior, names[senior])
    roles = active.union(through)
    return Subject(
        user_id=user.id,
        user_name=user.name,
        active_role_ids=active,
        role_ids=roles,
        role_names={role: names[role] for role in roles},
        through=through,
        session_id=session_id,
        barred=barred,
        could_hold=could_hold,
    )
