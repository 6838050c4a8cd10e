"""A user changes its own password. That ends the user's other sessions."""

from __future__ import annotations

from catalog.audit import Outcome
from catalog.errors import InvalidInput, NotAuthenticated
from catalog.login import LoginRules, count_failure, refusal
from catalog.passwords import Passwords, check_new_password
from catalog.sessions import authenticate, end_session, open_sessions_of
from catalog.store import Catalog, Change


def change_password(
    catalog: Catalog,
    passwords: Passwords,
    token: str,
    old: str,
    new: str,
    rules: LoginRules = LoginRules(),  # noqa: B008 - a frozen value
) -> tuple[int, ...]:
    """Set a new password for the user of the session. Returns the ids of the ended sessions.

    The password is then no one-time password. Raises InvalidInput if the new password is not
    allowed or equals the old one. Raises NotAuthenticated for a wrong old password, which counts as
    a failed login.
    """
    check_new_password(new)
    if new == old:
        raise InvalidInput("the new password is the old one; choose another one")
    with catalog.read() as session:
        user = authenticate(session, token, catalog.clock(), allow_one_time=True).user
    # bcrypt is slow, so it runs between two transactions.
    fits = passwords.verify(old, user.password_hash)
    new_hash = passwords.hash(new)
    with catalog.change(user.name) as change:
        proven = user.password_hash if fits else None
        ended = _conclude(change, token, proven, new_hash, rules)
    if ended is None:
        raise NotAuthenticated("the old password is wrong")
    return ended


def _conclude(
    change: Change, token: str, proven: str | None, new_hash: str, rules: LoginRules
) -> tuple[int, ...] | None:
    login = authenticate(change.session, token, change.now, allow_one_time=True)
    user = login.user
    why = refusal(user, proven, change.now)
    if why is not None:
        count_failure(user, change.now, rules)
        change.audit("change password", f"user {user.name}", Outcome.DENIED, why)
        return None
    user.password_hash = new_hash
    user.must_change_password = False
    user.failed_logins, user.logins_stopped_until = 0, None
    change.audit("change password", f"user {user.name}")
    others = [row for row in open_sessions_of(change.session, user) if row.id != login.id]
    for other in others:
        end_session(change, other, "end session", "the password was changed")
    return tuple(other.id for other in others)
