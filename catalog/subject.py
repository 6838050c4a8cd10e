"""Subjects: a user together with the roles that count (OxRBAC, 004 §2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import and_, bindparam, exists, or_, orm, select

from catalog.conflict_class import ConflictClass
from catalog.conflict_classes import levels_of
from catalog.label import PUBLIC, Label
from catalog.models import Access, AccessRole, Membership, Session, SessionRole, User
from catalog.roles import Closure, juniors_from, juniors_with_names, read_closure
from catalog.senders import NOWHERE, sent_to
from catalog.session_levels import SessionLevel, classes_of, from_stored, within

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
# Sessions that have not ended. The time of some of them may be over already.
_OPEN_SESSIONS = select(Session.id, Session.expires_at).where(
    Session.id.in_(bindparam("sessions")), Session.ended_at.is_(None)
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A user with the roles that count now.

    `active_role_ids` are the active roles. `role_ids` are these and all their juniors, and
    `role_names` has the name of each. `through` gives for each junior the active role through which
    it is held. `barred` is the reason why nothing is allowed (such as a locked user), not even to
    an owner, or None. `session_id` is None for a kept access. `sends_to` are the streams with a
    declared aggregate to which the user may SEND by any of its roles, active or not. Each has the
    name of a role that gives it. `level` is the level of the user (001 §3), as a label. If the
    session or the access has a level of its own, it is `session_level`, and `level` is narrowed to
    it.
    """

    user_id: int
    user_name: str
    sends_to: Mapping[int, str] = field(hash=False)
    active_role_ids: frozenset[int] = frozenset()
    role_ids: frozenset[int] = frozenset()
    role_names: Mapping[int, str] = field(default_factory=dict, hash=False)
    through: Mapping[int, str] = field(default_factory=dict, hash=False)
    session_id: int | None = None
    barred: str | None = None
    level: Label = PUBLIC
    session_level: SessionLevel | None = field(default=None, hash=False)


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
    held = read_closure(session, _HELD_IN_SESSION, session_id=login.id)
    level = from_stored(login.level)
    own = _OfUsers.of(session, [login.user.id], [level])
    by = _Through(login.id, barred, level)
    return _subject(login.user, own, by, frozenset(held.members), held)


def subject_of_user(session: orm.Session, user: User, *, lock_counts: bool = True) -> Subject:
    """The subject of the user if all of its roles were active. `explain` uses it.

    Without `lock_counts`, it is that of a user that is not locked, as floors need it.
    """
    (found,) = subjects_of_users(session, [user], lock_counts=lock_counts)
    return found


def subjects_of_users(
    session: orm.Session, users: Collection[User], *, lock_counts: bool = True
) -> tuple[Subject, ...]:
    """As `subject_of_user` for each of these users, in their order.

    The number of database queries does not depend on the number of users.
    """
    ids = [user.id for user in users]
    held: dict[int, set[int]] = {number: set() for number in ids}
    for user_id, role_id in session.execute(_HELD_BY_USERS, {"users": ids}):
        held[user_id].add(role_id)
    juniors = juniors_with_names(session, set().union(*held.values()))
    own, by = _OfUsers.of(session, ids), _Through(lock_counts=lock_counts)
    return tuple(_subject(user, own, by, frozenset(held[user.id]), juniors) for user in users)


def subject_with_roles(session: orm.Session, user: User, roles: Collection[int]) -> Subject:
    """The subject of the user if these roles were active, as far as it holds them."""
    own = select(Membership.role_id).where(
        Membership.user_id == user.id, Membership.role_id.in_(roles)
    )
    active = frozenset(session.scalars(own))
    of_user, held = _OfUsers.of(session, [user.id]), juniors_with_names(session, active)
    return _subject(user, of_user, _Through(), active, held)


def subjects_of_accesses(
    session: orm.Session, accesses: Sequence[Access], now: datetime
) -> tuple[Subject, ...]:
    """The subjects of access rows, in their order: the user with the roles of the access.

    A role counts only if the user still holds it. If the access belongs to a session, the role must
    also be active in it. An access is barred if it has ended, or if the time of its session is over
    at `now`. The number of database queries does not depend on the number of accesses.
    """
    if not accesses:
        return ()
    held: dict[int, set[int]] = {access.id: set() for access in accesses}
    for access_id, role_id in session.execute(_HELD_BY_ACCESSES, {"accesses": list(held)}):
        held[access_id].add(role_id)
    ends = _ends_of_open_sessions(session, accesses)
    juniors = juniors_with_names(session, set().union(*held.values()))
    levels = {access.id: from_stored(access.level) for access in accesses}
    own = _OfUsers.of(session, [access.user_id for access in accesses], levels.values())
    return tuple(
        _subject(
            access.user,
            own,
            _Through(access.session_id, _bar(access, ends, now), levels[access.id]),
            frozenset(held[access.id]),
            juniors,
        )
        for access in accesses
    )


def _ends_of_open_sessions(
    session: orm.Session, accesses: Sequence[Access]
) -> Mapping[int, datetime]:
    """The end of the time of each session of the accesses that has not ended, by its id."""
    wanted = {access.session_id for access in accesses if access.session_id is not None}
    if not wanted:
        return {}
    rows = session.execute(_OPEN_SESSIONS, {"sessions": list(wanted)})
    return {row.id: row.expires_at for row in rows}


def _bar(access: Access, ends: Mapping[int, datetime], now: datetime) -> str | None:
    """The reason why the access is barred, or None."""
    if access.ended_at is not None:
        return "the access has ended"
    if access.session_id is not None:
        ends_at = ends.get(access.session_id)
        if ends_at is None or ends_at <= now:
            return "the session has ended"
    return None


@dataclass(frozen=True, slots=True)
class _OfUsers:
    """What users have whatever their roles: where they send to, and their levels.

    `classes` are the conflict classes of the levels of their sessions.
    """

    sending: Mapping[int, Mapping[int, str]]
    levels: Mapping[int, Label]
    classes: Mapping[int, ConflictClass]

    @classmethod
    def of(
        cls,
        session: orm.Session,
        users: Sequence[int],
        of_sessions: Iterable[SessionLevel | None] = (),
    ) -> _OfUsers:
        classes = classes_of(session, of_sessions)
        return cls(sent_to(session, users), levels_of(session, users), classes)


@dataclass(frozen=True, slots=True)
class _Through:
    """The session or access through which a user acts: why it is barred, and its own level.

    A lock of the user bars it, too, where `lock_counts`.
    """

    session_id: int | None = None
    barred: str | None = None
    level: SessionLevel | None = None
    lock_counts: bool = True


def _subject(
    user: User, own: _OfUsers, by: _Through, held: frozenset[int], juniors: Closure
) -> Subject:
    """The subject with the active roles `held`, all of which are in `juniors`."""
    barred = "the user is locked" if user.locked and by.lock_counts else by.barred
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
        sends_to=own.sending.get(user.id, NOWHERE),
        active_role_ids=active,
        role_ids=roles,
        role_names={role: names[role] for role in roles},
        through=through,
        session_id=by.session_id,
        barred=barred,
        level=within(own.levels.get(user.id, PUBLIC), by.level, own.classes),
        session_level=by.level,
    )
