"""Sessions: what a token stands for, how they end, and the one-time password."""

import pytest

from catalog import models
from catalog.errors import Denied, InvalidInput, NotAuthenticated, NotFound
from catalog.login import login
from catalog.models import Access, User
from catalog.password_change import change_password
from catalog.passwords import Passwords
from catalog.sessions import (
    authenticate,
    deactivate_role,
    ended_with_accesses,
    expired_sessions,
    logout,
    new_token,
    open_sessions_of,
)
from catalog.store import Catalog
from catalog.subject import subject_of_session
from tests.unit.catalog.world import START, SettableClock, World, error_of

GOOD, NEW = "correct horse battery", "a new and better one"
ENDED = (NotAuthenticated, "log in: there is no session, or it has ended")


@pytest.fixture
def people(world: World, passwords: Passwords) -> World:
    """al with two roles."""
    world.user("al", "A", "B", password_hash=passwords.hash(GOOD))
    world.object("output out1")
    return world


@pytest.fixture
def token(people: World, catalog: Catalog, passwords: Passwords) -> str:
    """A session of al."""
    return login(catalog, passwords, "al", GOOD).token


def who(catalog: Catalog, token: str, **options: bool) -> models.Session:
    with catalog.read() as session:
        return authenticate(session, token, catalog.clock(), **options)


def refused(catalog: Catalog, token: str) -> bool:
    return error_of(lambda: who(catalog, token)) == ENDED


@pytest.mark.parametrize("wrong", ["", "x", "\0", "\ud800", "ä", "x" * 100_000])
def test_a_token_that_was_never_given_out(token: str, catalog: Catalog, wrong: str) -> None:
    assert refused(catalog, wrong)
    assert refused(catalog, new_token())
    assert refused(catalog, token + "x")
    assert refused(catalog, token[:-1])


def test_the_stored_hash_is_no_token(token: str, catalog: Catalog) -> None:
    assert refused(catalog, who(catalog, token).token_hash)


def test_a_session_expires(token: str, catalog: Catalog, clock: SettableClock) -> None:
    clock.advance(hours=7, minutes=59, seconds=59)
    assert who(catalog, token).user.name == "al"
    with catalog.read() as session:
        assert expired_sessions(session, clock.now) == ()
    clock.advance(seconds=1)
    assert refused(catalog, token)
    with catalog.read() as session:
        assert [row.user.name for row in expired_sessions(session, clock.now)] == ["al"]


def test_a_locked_user_is_out_at_once(token: str, people: World, catalog: Catalog) -> None:
    people.edit(User, people.get(User, "al").id, locked=True)
    assert refused(catalog, token)
    with catalog.read() as session:
        assert len(expired_sessions(session, START)) == 1


def test_logout_ends_the_session_once(token: str, catalog: Catalog) -> None:
    with catalog.change("al") as change:
        row = authenticate(change.session, token, change.now)
        assert logout(change, row)
        assert not logout(change, row)
    assert refused(catalog, token)


def test_a_change_sees_a_session_that_another_service_ended(token: str, catalog: Catalog) -> None:
    row = who(catalog, token)
    with catalog.change("al") as change:
        stale = change.session.get(models.Session, row.id)
        assert stale is not None
        change.session.connection().exec_driver_sql(
            "UPDATE sessions SET ended_at = '2026-01-31 12:00:00.000000'"
        )
        assert error_of(lambda: authenticate(change.session, token, change.now)) == ENDED
        change.audit("test", "session")


def test_a_role_is_deactivated_for_the_rest_of_the_session(token: str, catalog: Catalog) -> None:
    with catalog.change("al") as change:
        row = authenticate(change.session, token, change.now)
        assert deactivate_role(change, row, "A").name == "A"
        for role in ("A", "Z"):
            words = f"no role '{role}' is active in this session"
            assert error_of(lambda: deactivate_role(change, row, role)) == (NotFound, words)  # noqa: B023
    with catalog.read() as session:
        row = authenticate(session, token, catalog.clock())
        assert set(subject_of_session(session, row).role_names.values()) == {"B"}


def test_sessions_that_ended_and_still_have_accesses(
    token: str, people: World, catalog: Catalog
) -> None:
    row = who(catalog, token)
    access = people.access("al", "output out1", "A", session_id=row.id)
    people.access("al", "output out1", "A")
    with catalog.read() as session:
        assert ended_with_accesses(session) == ()
        assert [found.id for found in open_sessions_of(session, row.user)] == [row.id]
    people.edit(models.Session, row.id, ended_at=START)
    with catalog.read() as session:
        assert [found.id for found in ended_with_accesses(session)] == [row.id]
        assert open_sessions_of(session, row.user) == ()
    people.edit(Access, access.id, ended_at=START)
    with catalog.read() as session:
        assert ended_with_accesses(session) == ()


def test_a_one_time_password_lets_nothing_else_through(
    people: World, catalog: Catalog, passwords: Passwords
) -> None:
    people.edit(User, people.get(User, "al").id, must_change_password=True)
    opened = login(catalog, passwords, "al", GOOD)
    assert opened.must_change_password
    with pytest.raises(Denied, match="one-time password first"):
        who(catalog, opened.token)
    with catalog.read() as session:
        row = authenticate(session, opened.token, catalog.clock(), allow_one_time=True)
        subject = subject_of_session(session, row)
        assert (subject.role_ids, subject.barred is None) == (frozenset(), False)
    change_password(catalog, passwords, opened.token, GOOD, NEW)
    assert who(catalog, opened.token).user.must_change_password is False
    assert error_of(lambda: login(catalog, passwords, "al", GOOD)) is not None
    login(catalog, passwords, "al", NEW)


def test_a_new_password_ends_the_other_sessions(
    token: str, catalog: Catalog, passwords: Passwords
) -> None:
    others = [login(catalog, passwords, "al", GOOD) for _ in range(2)]
    ended = change_password(catalog, passwords, token, GOOD, NEW)
    assert set(ended) == {other.session_id for other in others}
    assert who(catalog, token).user.name == "al"
    assert all(refused(catalog, other.token) for other in others)


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("a wrong password", NEW, NotAuthenticated, "old password is wrong"),
        (GOOD, GOOD, InvalidInput, "is the old one"),
        (GOOD, "short", InvalidInput, "at least 12"),
        (GOOD, "x" * 73, InvalidInput, "at most 72 bytes"),
    ],
)
def test_a_password_is_not_changed(  # noqa: PLR0917 - fixtures and a row of a table
    token: str,
    catalog: Catalog,
    passwords: Passwords,
    old: str,
    new: str,
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        change_password(catalog, passwords, token, old, new)
    login(catalog, passwords, "al", GOOD)


def test_old_passwords_cannot_be_guessed_with_a_session(
    token: str, catalog: Catalog, passwords: Passwords
) -> None:
    for _ in range(5):
        with pytest.raises(NotAuthenticated):
            change_password(catalog, passwords, token, "a wrong password", NEW)
    with pytest.raises(NotAuthenticated, match="old password is wrong"):
        change_password(catalog, passwords, token, GOOD, NEW)


def test_without_a_session_no_password_is_changed(
    token: str, catalog: Catalog, passwords: Passwords, clock: SettableClock
) -> None:
    clock.advance(hours=8)
    with pytest.raises(NotAuthenticated, match="log in"):
        change_password(catalog, passwords, token, GOOD, NEW)
