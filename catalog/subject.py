"""Subjects: who asks, with which roles (OxRBAC, 004 §2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import bindparam, orm, select
from sqlalchemy.orm import selectinload

from catalog.models import Access, Membership, Role, Session, User
from catalog.roles import Closure, juniors_with_names

_MEMBERSHIPS = select(Membership.user_id, Membership.role_id).where(
    Membership.user_id.in_(bindparam("users"))
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A user with the roles that count now.

    `active_role_ids` are those that were activated, `role_ids` these and all their juniors;
    `role_names` names each of `role_ids`; `through` gives for a junior the active role that it is
    held through. `barred` says why nothing at all is allowed (the user is locked, ...), not even by
    ownership; None where the roles and ownership decide. `session_id` is None for an access that
    outlives its session.
    """

    user_id: int
    user_name: str
    active_role_ids: frozenset[int] = frozenset()
    role_ids: frozenset[int] = frozenset()
    role_names: Mapping[int, str] = field(default_factory=dict, hash=False)
    through: Mapping[int, str] = field(default_factory=dict, hash=False)
    session_id: int | None = None
    barred: str | None = None


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a session or an access says; `barred` where it counts for nothing."""

    user: User
    role_ids: frozenset[int]
    session_id: int | None
    barred: str | None


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
    claim = _Claim(login.user, _ids(login.active_roles), login.id, barred)
    return _subjects(session, [claim])[0]


def subject_of_user(session: orm.Session, user: User) -> Subject:
    """What the user would be with all of its roles active: for `explain`."""
    own = select(Membership.role_id).where(Membership.user_id == user.id)
    claim = _Claim(user, frozenset(session.scalars(own)), None, None)
    return _subjects(session, [claim])[0]


def subject_of_access(session: orm.Session, access: Access) -> Subject:
    """The subject of an access row; see `subjects_of_accesses`."""
    return subjects_of_accesses(session, [access])[0]


def subjects_of_accesses(session: orm.Session, accesses: Sequence[Access]) -> tuple[Subject, ...]:
    """The subjects of access rows, in their order: the user with the roles of the access.

    Of these only those count that the user still holds and, where the access belongs to a session,
    that are still active in it. A handful of queries, however many accesses there are.
    """
    wanted = {access.session_id for access in accesses if access.session_id is not None}
    own = select(Session).where(Session.id.in_(wanted)).options(selectinload(Session.active_roles))
    rows = session.scalars(own) if wanted else ()
    logins = {login.id: login for login in rows}
    return _subjects(session, [_claim(access, logins) for access in accesses])


def _claim(access: Access, logins: Mapping[int, Session]) -> _Claim:
    roles = _ids(access.roles)
    barred = None
    if access.ended_at is not None:
        barred = "the access has ended"
    if access.session_id is not None:
        login = logins.get(access.session_id)
        if login is None or login.ended_at is not None:
            barred = "the session has ended"
        else:
            roles &= _ids(login.active_roles)
    return _Claim(access.user, roles, access.session_id, barred)


def _ids(roles: Iterable[Role]) -> frozenset[int]:
    return frozenset(role.id for role in roles)


def _subjects(session: orm.Session, claims: Sequence[_Claim]) -> tuple[Subject, ...]:
    users = {claim.user.id for claim in claims}
    memberships = session.execute(_MEMBERSHIPS, {"users": list(users)})
    held = {(user, role) for user, role in memberships}
    juniors = juniors_with_names(session, {role for claim in claims for role in claim.role_ids})
    return tuple(_subject(claim, held, juniors) for claim in claims)


def _subject(claim: _Claim, held: set[tuple[int, int]], juniors: Closure) -> Subject:
    user, closure, names = claim.user, juniors.members, juniors.names
    barred = "the user is locked" if user.locked else claim.barred
    active = frozenset(
        role for role in claim.role_ids if (user.id, role) in held and role in closure
    )
    if barred is not None:
        active = frozenset()
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
        session_id=claim.session_id,
        barred=barred,
    )
