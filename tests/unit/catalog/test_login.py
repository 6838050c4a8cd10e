"""Logging in: one answer and one amount of work for all that fails."""

import contextlib
import threading
from unittest import mock

import bcrypt
import pytest
from sqlalchemy import select

from catalog import models
from catalog.audit import NOBODY
from catalog.errors import Denied, NotAuthenticated
from catalog.login import Login, LoginRules, Wanted, login
from catalog.models import AuditEntry, User
from catalog.passwords import Passwords
from catalog.sessions import authenticate, token_hash
from catalog.store import Catalog
from catalog.subject import subject_of_session
from tests.unit.catalog.world import SettableClock, World, error_of

GOOD, WRONG = "correct horse battery", "incorrect horse battery"
FAILED = (NotAuthenticated, "the user name or the password is wrong")


@pytest.fixture
def people(world: World, passwords: Passwords) -> World:
    """al with two roles, locked lea, and bob without a role."""
    stored = passwords.hash(GOOD)
    world.user("al", "A", "B", password_hash=stored)
    world.user("bob", password_hash=stored)
    world.user("lea", password_hash=stored, locked=True)
    world.role("C")
    return world


def fail(catalog: Catalog, passwords: Passwords, name: str, password: str = WRONG) -> None:
    assert error_of(lambda: login(catalog, passwords, name, password)) == FAILED


def last_entry(catalog: Catalog) -> AuditEntry:
    with catalog.read() as session:
        entry = session.scalar(select(AuditEntry).order_by(AuditEntry.seq.desc()))
        assert entry is not None
        return entry


def test_a_session_is_opened(
    people: World, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    opened = login(catalog, passwords, "al", GOOD)
    assert (opened.user, opened.roles, opened.must_change_password) == ("al", ("A", "B"), False)
    assert (opened.expires_at - clock.now).total_seconds() == 8 * 3600
    assert len(opened.token) >= 43
    assert opened.token not in repr(opened)
    with catalog.read() as session:
        row = authenticate(session, opened.token, clock.now)
        assert (row.id, row.token_hash) == (opened.session_id, token_hash(opened.token))
        assert set(subject_of_session(session, row).role_names.values()) == {"A", "B"}
    entry = last_entry(catalog)
    assert (entry.actor, entry.action, entry.outcome) == ("al", "login", "changed")
    assert entry.detail == {"session": opened.session_id, "roles": ["A", "B"]}


@pytest.mark.parametrize(
    ("wanted", "active"),
    [(None, ("A", "B")), ([], ()), (["B"], ("B",)), (["B", "A", "B"], ("A", "B"))],
)
def test_roles_are_chosen(
    people: World,
    catalog: Catalog,
    passwords: Passwords,
    wanted: list[str] | None,
    active: tuple[str, ...],
) -> None:
    assert login(catalog, passwords, "al", GOOD, Wanted(wanted)).roles == active


def test_a_role_that_is_not_held_and_one_that_is_not_there_are_the_same(
    people: World, catalog: Catalog, passwords: Passwords
) -> None:
    for role in ("C", "Z"):
        refused = error_of(lambda: login(catalog, passwords, "al", GOOD, Wanted(["A", role])))  # noqa: B023
        assert refused == (Denied, f"the role '{role}' is not one that you hold")
        # Before the password is proven, nothing is said about roles.
        assert error_of(lambda: login(catalog, passwords, "al", WRONG, Wanted([role]))) == FAILED  # noqa: B023
    with catalog.read() as session:
        assert session.scalar(select(models.Session)) is None


@pytest.mark.parametrize(
    ("name", "password", "why"),
    [
        ("al", WRONG, "the password is wrong"),
        ("al", "", "the password is wrong"),
        ("al", "x" * 500, "the password is wrong"),
        ("al", GOOD + "\0", "the password is wrong"),
        ("nobody", GOOD, "there is no such user"),
        ("", GOOD, "there is no such user"),
        ("al\0", GOOD, "there is no such user"),
        ("\ud800", GOOD, "there is no such user"),
        ("x" * 10_000, GOOD, "there is no such user"),
        ("AL", GOOD, "there is no such user"),
        ("lea", GOOD, "the user is locked"),
        ("al' OR '1'='1", GOOD, "there is no such user"),
    ],
)
def test_all_that_fails_fails_alike(
    people: World, catalog: Catalog, passwords: Passwords, name: str, password: str, why: str
) -> None:
    passwords.verify("", None)
    with mock.patch("bcrypt.checkpw", wraps=bcrypt.checkpw) as check:
        fail(catalog, passwords, name, password)
    assert check.call_count == 1
    entry = last_entry(catalog)
    assert (entry.action, entry.outcome, entry.reason) == ("login", "denied", why)
    known = name in ("al", "lea")
    assert entry.object == (f"user {name}" if known else NOBODY)
    assert GOOD not in str(entry.detail)


def test_bcrypt_runs_in_no_transaction(
    people: World, catalog: Catalog, passwords: Passwords
) -> None:
    def verify(*_: object) -> bool:
        assert catalog.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        return False

    with mock.patch.object(passwords, "verify", verify):
        fail(catalog, passwords, "al")


def test_five_failures_stop_logins_for_five_minutes(
    people: World, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    for _ in range(5):
        fail(catalog, passwords, "al")
    with mock.patch("bcrypt.checkpw", wraps=bcrypt.checkpw) as check:
        fail(catalog, passwords, "al", GOOD)
    assert check.call_count == 1
    assert last_entry(catalog).reason == "logins are stopped after too many failures"
    # Another user is not touched, and what fails meanwhile does not lengthen the stop.
    login(catalog, passwords, "bob", GOOD)
    clock.advance(minutes=4, seconds=59)
    fail(catalog, passwords, "al", GOOD)
    clock.advance(seconds=1)
    login(catalog, passwords, "al", GOOD)


def test_a_login_takes_the_count_back(
    people: World, catalog: Catalog, passwords: Passwords
) -> None:
    for _ in range(3):
        for _ in range(4):
            fail(catalog, passwords, "al")
        login(catalog, passwords, "al", GOOD)


def test_after_a_stop_the_count_begins_anew(
    people: World, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    for _ in range(5):
        fail(catalog, passwords, "al")
    clock.advance(minutes=6)
    for _ in range(4):
        fail(catalog, passwords, "al")
    login(catalog, passwords, "al", GOOD)


def test_a_stop_ends_no_session(
    people: World, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    token = login(catalog, passwords, "al", GOOD).token
    for _ in range(6):
        fail(catalog, passwords, "al")
    with catalog.read() as session:
        assert authenticate(session, token, clock.now).user.name == "al"


def test_guesses_at_once_are_no_more_guesses(
    people: World, catalog: Catalog, passwords: Passwords
) -> None:
    """All pass the first look before any is counted; the count decides after the check."""
    everybody = threading.Barrier(12)
    opened: list[Login] = []
    verify = passwords.verify

    def together(password: str, stored: str | None) -> bool:
        everybody.wait(30)
        return verify(password, stored)

    def guess(password: str) -> None:
        with contextlib.suppress(NotAuthenticated):
            opened.append(login(catalog, passwords, "al", password))

    with mock.patch.object(passwords, "verify", together):
        threads = [threading.Thread(target=guess, args=(WRONG,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert opened == []
    with catalog.read() as session:
        user = session.scalar(select(User).where(User.name == "al"))
        assert user is not None
        assert user.failed_logins == 5
    fail(catalog, passwords, "al", GOOD)


def test_a_password_that_was_changed_meanwhile_opens_nothing(
    people: World, catalog: Catalog, passwords: Passwords
) -> None:
    verify = passwords.verify

    def changed_meanwhile(password: str, stored: str | None) -> bool:
        new = passwords.hash("another password")
        people.edit(User, people.get(User, "al").id, password_hash=new)
        return verify(password, stored)

    with mock.patch.object(passwords, "verify", changed_meanwhile):
        fail(catalog, passwords, "al", GOOD)


def test_the_rules_are_settings(
    people: World, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    rules = LoginRules(failures=1)
    assert error_of(lambda: login(catalog, passwords, "al", WRONG, rules=rules)) == FAILED
    fail(catalog, passwords, "al", GOOD)
