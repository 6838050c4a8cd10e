"""Sessions: what a token stands for, how a session ends (session manager, 004 §2 and §3)."""

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
# Statements that every request runs are made once: making one takes longer than running it.
_LOGIN = (
    select(Session)
    .where(Session.token_hash == bindparam("digest"))
    .options(orm.joinedload(Session.user))
    # Inside a change, what another service did meanwhile counts, not what was read before.
    .execution_options(populate_existing=True)
)


def new_token() -> str:
    """An opaque random token; the catalog keeps only `token_hash` of it."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def token_hash(token: str) -> str:
    """What the catalog keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def authenticate(
    session: orm.Session, token: str, now: datetime, *, allow_one_time: bool = False
) -> Session:
    """The session that the token stands for, with its user.

    Raises NotAuthenticated, always in the same words, for a token that was never given out, an
    ended or expired session and a locked user; Denied while the one-time password stands, except
    where `allow_one_time` lets that session through (to change it, to look at itself, to log out).
    """
    digest = token_hash(token)
    login = session.scalars(_LOGIN, {"digest": digest}).one_or_none()
    # The look-up goes by a hash, so its time tells nothing; the comparison is for good measure.
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
    """End a session; False where it had ended before. `action` is what the audit log calls it."""
    if login.ended_at is not None:
        return False
    login.ended_at = change.now
    change.audit(action, f"user {login.user.name}", reason=reason, detail={"session": login.id})
    return True


def logout(change: Change, login: Session) -> bool:
    """End a session at its user's wish; its accesses are the caller's to withdraw."""
    return end_session(change, login, "logout")


def deactivate_role(change: Change, login: Session, role_name: str) -> Role:
    """Take a role out of a session, for the rest of it; the role, whose accesses then end.

    Raises NotFound, in the same words, for a role that is unknown or is not active.
    """
    role = next((role for role in login.active_roles if role.name == role_name), None)
    if role is None:
        raise NotFound(f"no role {role_name[:80]!r} is active in this session")
    login.active_roles.remove(role)
    change.session.flush()
    change.audit("deactivate role", f"role {role.name}", detail={"session": login.id})
    return role


def expired_sessions(session: orm.Session, now: datetime) -> tuple[Session, ...]:
    """Sessions that are to be ended now: over their time, or of a locked user."""
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
    """Ended sessions that still have accesses: what a service that crashed in between left."""
    left = select(Access.session_id).where(
        and_(Access.session_id.is_not(None), Access.ended_at.is_(None))
    )
    query = select(Session).where(Session.ended_at.is_not(None), Session.id.in_(left))
    return tuple(session.scalars(query.order_by(Session.id)))
