"""A service begins anew after the system's clock was put back an hour: what still holds.

While it runs, its clock goes on (`test_clock.py`).
"""

import pytest

from catalog.audit import AuditReport, verify
from catalog.errors import Denied, NotAuthenticated
from catalog.login import LoginRules, login
from catalog.models import AuditEntry, User
from catalog.password_change import change_password
from catalog.passwords import Passwords
from catalog.sessions import authenticate, end_session, expired_sessions, logout
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY
from tests.unit.catalog.world import SettableClock, World, error_of

GOOD, NEW, WRONG = "correct horse battery", "a new and better one", "incorrect horse battery"
FAILED = (NotAuthenticated, "the user name or the password is wrong")
ENDED = (NotAuthenticated, "log in: there is no session, or it has ended")
RULES = LoginRules()


@pytest.fixture
def al(world: World, passwords: Passwords) -> User:
    """A user with a password of his own."""
    return world.user("al", "A", password_hash=passwords.hash(GOOD))


def refused(catalog: Catalog, token: str) -> bool:
    with catalog.read() as session:
        return error_of(lambda: authenticate(session, token, catalog.clock())) == ENDED


def end_expired(catalog: Catalog) -> int:
    with catalog.change("(platform)") as change:
        over = expired_sessions(change.session, change.now)
        for row in over:
            end_session(change, row, "expire session")
        change.audit("look", "sessions")
        return len(over)


def test_a_session_lives_longer_by_no_more_than_what_the_clock_was_put_back(
    al: User, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    token = login(catalog, passwords, "al", GOOD).token
    clock.advance(hours=2)
    clock.advance(hours=-1)
    assert not refused(catalog, token)
    clock.advance(hours=7)
    assert refused(catalog, token)


def test_an_ended_session_does_not_come_back(
    al: User, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    expired, left = (login(catalog, passwords, "al", GOOD).token for _ in range(2))
    with catalog.change("al") as change:
        assert logout(change, authenticate(change.session, left, change.now))
    clock.advance(hours=8)
    assert end_expired(catalog) == 1
    clock.advance(hours=-1)
    assert refused(catalog, left)
    assert refused(catalog, expired)
    assert end_expired(catalog) == 0


def test_a_lock_holds_whatever_the_clock_shows(
    al: User, world: World, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    token = login(catalog, passwords, "al", GOOD).token
    world.edit(User, al.id, locked=True)
    clock.advance(hours=-1)
    assert refused(catalog, token)
    assert error_of(lambda: login(catalog, passwords, "al", GOOD)) == FAILED


def test_stopped_logins_stay_stopped_and_go_on_later(
    al: User, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    for _ in range(RULES.failures):
        assert error_of(lambda: login(catalog, passwords, "al", WRONG)) == FAILED
    clock.advance(hours=-1)
    assert error_of(lambda: login(catalog, passwords, "al", GOOD)) == FAILED, "no free guesses"
    clock.advance(hours=1, minutes=5)
    assert login(catalog, passwords, "al", GOOD).user == "al"


def test_a_one_time_password_is_good_for_one_change(
    world: World, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    hashed = passwords.hash(GOOD)
    world.user("new", password_hash=hashed, must_change_password=True)
    token = login(catalog, passwords, "new", GOOD).token
    clock.advance(hours=-1)
    with catalog.read() as session:
        failure = error_of(lambda: authenticate(session, token, catalog.clock()))
    assert failure is not None and failure[0] is Denied
    change_password(catalog, passwords, token, GOOD, NEW)
    clock.advance(hours=-1)
    assert error_of(lambda: login(catalog, passwords, "new", GOOD)) == FAILED
    assert login(catalog, passwords, "new", NEW).must_change_password is False


def test_the_audit_log_keeps_its_order(catalog: Catalog, clock: SettableClock) -> None:
    catalog.record("joe", "first", "system", "allowed")
    clock.advance(hours=-1)
    catalog.record("joe", "second", "system", "allowed")
    with catalog.read() as session:
        entries = session.query(AuditEntry).order_by(AuditEntry.seq).all()
        assert [entry.action for entry in entries] == ["first", "second"]
        assert entries[1].at < entries[0].at, "the time that the clock showed is what it says"
        assert verify(session, AUDIT_KEY) == AuditReport(2)
