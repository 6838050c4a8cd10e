"""Login (authenticator, 004 §2). Every failed login gets the same answer after the same work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session as DatabaseSession

from catalog.audit import NOBODY, Outcome
from catalog.errors import Denied, NotAuthenticated, PlatformError
from catalog.models import Membership, Role, Session, User
from catalog.passwords import Passwords
from catalog.session_levels import SessionLevel, chosen_level, level_words, to_stored
from catalog.sessions import new_token, token_hash
from catalog.store import Catalog, Change


@dataclass(frozen=True, slots=True)
class LoginRules:
    """How long a session lasts, how many failed logins stop logins, and for how long."""

    lifetime: timedelta = timedelta(hours=8)
    failures: int = 5
    stop: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Login:
    """A session that was opened. Only this object has the token: the catalog keeps a hash of it."""

    token: str = field(repr=False)
    session_id: int
    user: str
    roles: tuple[str, ...]
    level: tuple[str, ...]
    expires_at: datetime
    must_change_password: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session is opened with: its active roles (None: all that the user holds), and parts of
    its level, by the names of conflict classes (None: that of its user).
    """

    roles: Sequence[str] | None = None
    level: Mapping[str, str] | None = None


def login(
    catalog: Catalog,
    passwords: Passwords,
    name: str,
    password: str,
    wanted: Wanted = Wanted(),
    rules: LoginRules = LoginRules(),
) -> Login:
    """Open a session in which the wanted roles are active, at the wanted level.

    Raises NotAuthenticated for an unknown or locked user, for a wrong password, and while logins
    are stopped. The words and the work are the same for all of these. Raises Denied for a role that
    is unknown or that the user does not hold, and for a level that the user's own does not dominate
    (001 §3). All of these are written to the audit log.
    """
    with catalog.read() as session:
        user = user_named(session, name)
        stored = user.password_hash if user else None
    # This takes a tenth of a second. It is between two transactions, so that nobody waits for it.
    fits = passwords.verify(password, stored)
    with catalog.change(user.name if user else NOBODY) as change:
        # Raise a refusal after the commit. Otherwise its audit entry would be rolled back too.
        result = _conclude(change, name, stored if fits else None, wanted, rules)
    if isinstance(result, PlatformError):
        raise result
    return result


def _conclude(
    change: Change,
    name: str,
    proven: str | None,
    wanted: Wanted,
    rules: LoginRules,
) -> Login | PlatformError:
    """Decide on the current state. `proven` is the hash that the password fits, or None."""
    user = user_named(change.session, name)
    # Do not keep an unknown name, because people type passwords into the wrong field.
    who = f"user {user.name}" if user else NOBODY
    why = refusal(user, proven, change.now)
    if user is None or why is not None:
        if user is not None:
            count_failure(user, change.now, rules)
        change.audit("login", who, Outcome.DENIED, why or "")
        return NotAuthenticated("the user name or the password is wrong")
    held = _held_roles(change.session, user)
    unknown = sorted(set(wanted.roles or ()) - held.keys())
    if unknown:
        reason = f"the role {unknown[0][:80]!r} is not one that you hold"
        change.audit("login", who, Outcome.DENIED, reason)
        return Denied(reason)
    try:
        level = None if not wanted.level else chosen_level(change.session, user.id, wanted.level)
    except Denied as refused:
        change.audit("login", who, Outcome.DENIED, str(refused))
        return refused
    active = [held[role] for role in sorted(held if wanted.roles is None else set(wanted.roles))]
    return _open(change, user, active, level, rules)


def _open(
    change: Change, user: User, active: list[Role], level: SessionLevel | None, rules: LoginRules
) -> Login:
    user.failed_logins, user.logins_stopped_until = 0, None
    token = new_token()
    row = Session(
        user_id=user.id,
        token_hash=token_hash(token),
        created_at=change.now,
        expires_at=change.now + rules.lifetime,
        active_roles=active,
        level=to_stored(level),
    )
    change.session.add(row)
    change.session.flush()
    names, words = tuple(role.name for role in active), level_words(change.session, level)
    detail: dict[str, object] = {"session": row.id, "roles": list(names)}
    if words:
        detail["level"] = list(words)
    change.audit("login", f"user {user.name}", detail=detail)
    must_change = user.must_change_password
    return Login(token, row.id, user.name, names, words, row.expires_at, must_change)


def user_named(session: DatabaseSession, name: str) -> User | None:
    """The user of that name, or None."""
    # Do not ask the database for an impossible name: PostgreSQL has its own error for NUL.
    if "\0" in name or not name.isascii():
        return None
    return session.scalar(select(User).where(User.name == name))


def refusal(user: User | None, proven: str | None, now: datetime) -> str | None:
    """Why a login fails, for the audit log only. None if it does not fail."""
    if user is None:
        return "there is no such user"
    if user.locked:
        return "the user is locked"
    if user.logins_stopped_until is not None and now < user.logins_stopped_until:
        return "logins are stopped after too many failures"
    if proven is None or user.password_hash != proven:
        return "the password is wrong"
    return None


def count_failure(user: User, now: datetime, rules: LoginRules) -> None:
    """Count a failed login. The last one that is allowed stops logins for a while.

    While logins are stopped, nothing is counted. Otherwise an attacker could keep a user out for
    ever.
    """
    until = user.logins_stopped_until
    if until is not None:
        if now < until:
            return
        user.failed_logins, user.logins_stopped_until = 0, None
    user.failed_logins += 1
    if user.failed_logins >= rules.failures:
        user.logins_stopped_until = now + rules.stop


def _held_roles(session: DatabaseSession, user: User) -> dict[str, Role]:
    query = select(Role).join(Membership, Membership.role_id == Role.id)
    rows = session.scalars(query.where(Membership.user_id == user.id))
    return {role.name: role for role in rows}
