"""Sessions: how a token proves one, and how one ends (session manager, 004 §2 and §3)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime

from sqlalchemy import and_, bindparam, or_, orm, select

from catalog.errors import Denied, NotAuthenticated, NotFound
from catalog.models import Access, Role, Session, User
from catalog.store import Change

_TOKEN_BYTES = 32
# Every request runs these statements. They are built once, because that takes longer.
_LOGIN = (
    select(Session)
    .where(Session.token_hash == bindparam("digest"))
    .options(orm.joinedload(Session.user))
    # Inside a change, read the rows again, because another service may have changed them.
    .execution_options(populate_existing=True)
)


def new_token() -> str:
    """A random token. The catalog keeps only its `token_hash`."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def token_hash(token: str) -> str:
    """What the catalog keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def authenticate(
    session: orm.Session, token: str, now: datetime, *, allow_one_time: bool = False
) -> Session:
    """The session of the token, with its user.

    Raises NotAuthenticated, always in the same words, for an unknown token, an ended or expired
    session and a locked user. Raises Denied while the user has a one-time password.
    `allow_one_time` allows such a session (to change the password, to see itself, to log out).
    """
    digest = token_hash(token)
    login = session.scalars(_LOGIN, {"digest": digest}).one_or_none()
    # The look-up uses a hash, so its time reveals nothing. The comparison is an extra check.
    if login is None or not hmac.compare_digest(login.token_hash, digest):
        raise _not_authenticated()
    if login.ended_at is not None or login.expires_at <= now or login.user.locked:
        raise _not_authenticated()
    if login.user.must_change_password and not allow_one_time:
        raise Denied("change the one-time password first; nothing else is allowed until then")
    return login


def _not_authenticated() -> NotAuthenticated:
    return NotAuthenticated("log in: there is no session, or it has ended")


def end_session(change: Change, login: Session, action: str, reason: str = "") -> bool:
    """End a session. Returns False if it had ended. `action` is its name in the audit log."""
    if login.ended_at is not None:
        return False
    login.ended_at = change.now
    change.audit(action, f"user {login.user.name}", reason=reason, detail={"session": login.id})
    return True


def logout(change: Change, login: Session) -> bool:
    """End a session because its user asks for it. The caller must withdraw its accesses."""
    return end_session(change, login, "logout")


def deactivate_role(change: Change, login: Session, role_name: str) -> Role:
    """Deactivate a role for the rest of a session. Returns the role, whose accesses must end.

    Raises NotFound, in the same words, for a role that is unknown or not active.
    """
    role = next((role for role in login.active_roles if role.name == role_name), None)
    if role is None:
        raise NotFound(f"no role {role_name[:80]!r} is active in this session")
    login.active_roles.remove(role)
    change.session.flush()
    change.audit("deactivate role", f"role {role.name}", detail={"session": login.id})
    return role


def expired_sessions(session: orm.Session, now: datetime) -> tuple[Session, ...]:
    """Sessions that must end now, because their time is over or their user is locked."""
    query = (
        select(Session)
        .join(User, User.id == Session.user_id)
        .where(Session.ended_at.is_(None), or_(Session.expires_at <= now, User.locked.is_(True)))
        .order_by(Session.id)
    )
    return tuple(session.scalars(query))


def open_sessions_of(session: orm.Session, user: User) -> tuple[Session, ...]:
    """The sessions of a user that have not ended."""
    query = select(Session).where(Session.user_id == user.id, Session.ended_at.is_(None))
    return tuple(session.scalars(query.order_by(Session.id)))


def ended_with_accesses(session: orm.Session) -> tuple[Session, ...]:
    """Ended sessions that still have accesses, because a service crashed at that moment."""
    left = select(Access.session_id).where(
        and_(Access.session_id.is_not(None), Access.ended_at.is_(None))
    )
    query = select(Session).where(Session.ended_at.is_not(None), Session.id.in_(left))
    return tuple(session.scalars(query.order_by(Session.id)))
