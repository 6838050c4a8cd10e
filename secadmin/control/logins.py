"""Sessions as a caller sees them: login, logout, roles, password, expiry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog import login as catalog_login
from catalog import sessions
from catalog.audit import PLATFORM
from catalog.login import Login, Wanted
from catalog.password_change import change_password as change_in_catalog
from catalog.session_levels import from_stored, level_words
from catalog.store import Change
from secadmin.control.platform import Platform
from secadmin.control.settlement import Settlement, of_sessions, undone_topics
from secadmin.control.slices import slices
from secadmin.control.withdrawals_first import carrying_out_first
from secadmin.control.work import Caller


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as its user sees it."""

    user: str
    roles: tuple[str, ...]
    level: tuple[str, ...]
    expires_at: datetime
    must_change_password: bool


def login(
    platform: Platform,
    user: str,
    password: str,
    roles: Sequence[str] | None,
    level: Mapping[str, str] | None = None,
) -> Login:
    """Open a session. Raises NotAuthenticated, Denied; see `catalog.login`."""
    wanted = Wanted(roles, level)
    return catalog_login.login(platform.catalog, platform.passwords, user, password, wanted)


def whoami(platform: Platform, caller: Caller) -> SessionView:
    """The caller's own session."""
    with platform.catalog.read() as session:
        found = sessions.authenticate(session, caller.token, platform.clock(), allow_one_time=True)
        roles = tuple(sorted(role.name for role in found.active_roles))
        user, level = found.user, level_words(session, from_stored(found.level))
        return SessionView(user.name, roles, level, found.expires_at, user.must_change_password)


def logout(platform: Platform, caller: Caller) -> None:
    """End the session and its accesses, and fence them."""
    with platform.catalog.change(caller.user_name) as change:
        own = sessions.authenticate(change.session, caller.token, change.now, allow_one_time=True)
        sessions.logout(change, own)
        topics = _settle(change, [own.id])
    platform.alignment.align(topics)


def deactivate_role(platform: Platform, caller: Caller, name: str) -> None:
    """Deactivate a role in this session. The session's accesses with this role end, fenced."""
    with (
        carrying_out_first(platform) as undone,
        platform.catalog.change(caller.user_name) as change,
    ):
        own = sessions.authenticate(change.session, caller.token, change.now, allow_one_time=True)
        undone.update(undone_topics(change.session, of_sessions(own.id)))
        sessions.deactivate_role(change, own, name)
        topics = _settle(change, [own.id])
    platform.alignment.align(topics)


def change_password(platform: Platform, caller: Caller, old: str, new: str) -> None:
    """Change the caller's password. Its other sessions and their accesses end, fenced."""
    ended = change_in_catalog(platform.catalog, platform.passwords, caller.token, old, new)
    end_leftover_accesses(platform)
    # The upkeep may have ended them just before, without the change in Kafka.
    with platform.catalog.read() as session:
        undone = undone_topics(session, of_sessions(*ended))
    platform.alignment.align(undone)


def end_expired(platform: Platform) -> None:
    """End the sessions whose time is over, and their accesses, fenced."""
    with platform.catalog.read() as session:
        if not sessions.expired_sessions(session, platform.clock()):
            return
    with platform.catalog.change(PLATFORM) as change:
        over = sessions.expired_sessions(change.session, change.now)
        for row in over:
            sessions.end_session(change, row, "expire session")
        topics = _settle(change, [row.id for row in over])
        if not over:
            change.audit("expire session", "nothing left to end")
    platform.alignment.align(topics)


def end_leftover_accesses(platform: Platform) -> None:
    """End accesses whose session has ended. A service that crashed may leave them."""
    with platform.catalog.read() as session:
        if not sessions.ended_with_accesses(session):
            return
    with platform.catalog.change(PLATFORM) as change:
        left = sessions.ended_with_accesses(change.session)
        topics = _settle(change, [row.id for row in left])
        change.audit("end accesses", "sessions", detail={"sessions": [row.id for row in left]})
    platform.alignment.align(topics)


def _settle(change: Change, session_ids: Sequence[int]) -> set[str]:
    change.session.flush()
    settlement = Settlement(change, change.now)
    for some in slices(session_ids):
        settlement.settle(of_sessions(*some))
    return settlement.topics
