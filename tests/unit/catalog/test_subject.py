"""Which roles count for a session and for an access."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import delete

from catalog import models
from catalog.models import Access, Membership, SessionRole, User
from catalog.store import Catalog
from catalog.subject import Subject, subjects_of_accesses
from tests.unit.catalog.world import START, World


@pytest.fixture
def staffed(world: World) -> World:
    """al holds A (senior to B, senior to C) and D."""
    world.role("A", ["B"])
    world.role("B", ["C"])
    world.user("al", "A", "D")
    world.object("output out1")
    return world


def of_session(world: World, login: models.Session) -> Subject:
    return world.ask(login, lambda _, subject: subject)


def of_access(world: World, access: Access, now: datetime = START) -> Subject:
    with world.catalog.read() as session:
        row = session.get(Access, access.id)
        assert row is not None
        return subjects_of_accesses(session, [row], now)[0]


def roles(subject: Subject) -> set[str]:
    assert set(subject.role_names) == subject.role_ids >= subject.active_role_ids
    return set(subject.role_names.values())


def take(catalog: Catalog, user: User, role: models.Role) -> None:
    with catalog.change("test") as change:
        gone = delete(Membership).where(
            Membership.user_id == user.id, Membership.role_id == role.id
        )
        change.session.execute(gone)
        change.audit("test", "membership")


def test_a_session_has_its_active_roles_and_their_juniors(staffed: World) -> None:
    login = staffed.session("al", "A")
    subject = of_session(staffed, login)
    assert roles(subject) == {"A", "B", "C"}
    assert {subject.role_names[role] for role in subject.active_role_ids} == {"A"}
    assert set(subject.through.values()) == {"A"}
    assert (subject.user_name, subject.session_id, subject.barred) == ("al", login.id, None)


def test_what_it_could_hold_is_all_of_its_users_roles_with_their_juniors(staffed: World) -> None:
    access = staffed.access("al", "output out1", "D")
    login = staffed.session("al", "D")
    held = {staffed.get_role(name) for name in "ABCD"}
    assert of_session(staffed, login).could_hold == held
    assert of_access(staffed, access).could_hold == held


def test_a_role_that_was_taken_counts_no_more(staffed: World, catalog: Catalog) -> None:
    login = staffed.session("al", "A", "D")
    take(catalog, staffed.get(User, "al"), staffed.role("A"))
    assert roles(of_session(staffed, login)) == {"D"}


def test_a_role_held_only_through_a_senior_one_cannot_be_active(staffed: World) -> None:
    assert roles(of_session(staffed, staffed.session("al", "B"))) == set()
    assert roles(of_access(staffed, staffed.access("al", "output out1", "B"))) == set()


def test_a_locked_user_has_no_roles(staffed: World) -> None:
    login, access = staffed.session("al", "A"), staffed.access("al", "output out1", "A")
    staffed.edit(User, staffed.get(User, "al").id, locked=True)
    for subject in (of_session(staffed, login), of_access(staffed, access)):
        assert roles(subject) == set()
        assert subject.barred == "the user is locked"


def test_an_ended_session_has_no_roles(staffed: World) -> None:
    login = staffed.session("al", "A")
    bound = staffed.access("al", "output out1", "A", session_id=login.id)
    staffed.edit(models.Session, login.id, ended_at=START)
    for subject in (of_session(staffed, login), of_access(staffed, bound)):
        assert roles(subject) == set()
        assert subject.barred == "the session has ended"


def test_an_access_ends_with_the_time_of_its_session(staffed: World) -> None:
    login = staffed.session("al", "A")
    bound = staffed.access("al", "output out1", "A", session_id=login.id)
    before = login.expires_at - timedelta(microseconds=1)
    assert roles(of_access(staffed, bound, before)) == {"A", "B", "C"}
    subject = of_access(staffed, bound, login.expires_at)
    assert (roles(subject), subject.barred) == (set(), "the session has ended")


def test_a_one_time_password_bars_the_session_but_not_the_accesses(staffed: World) -> None:
    login, access = staffed.session("al", "A"), staffed.access("al", "output out1", "A")
    staffed.edit(User, staffed.get(User, "al").id, must_change_password=True)
    assert of_session(staffed, login).barred is not None
    assert roles(of_session(staffed, login)) == set()
    assert roles(of_access(staffed, access)) == {"A", "B", "C"}


def test_an_access_that_outlives_its_session_has_the_roles_it_was_made_with(
    staffed: World, catalog: Catalog
) -> None:
    access = staffed.access("al", "output out1", "A", "D")
    assert roles(of_access(staffed, access)) == {"A", "B", "C", "D"}
    take(catalog, staffed.get(User, "al"), staffed.role("D"))
    assert roles(of_access(staffed, access)) == {"A", "B", "C"}


def test_an_access_of_a_session_loses_a_role_that_is_deactivated(
    staffed: World, catalog: Catalog
) -> None:
    login = staffed.session("al", "A", "D")
    access = staffed.access("al", "output out1", "A", "D", session_id=login.id)
    with catalog.change("al") as change:
        role = staffed.role("A").id
        gone = delete(SessionRole).where(SessionRole.role_id == role)
        change.session.execute(gone)
        change.audit("test", "role")
    assert roles(of_access(staffed, access)) == {"D"}


def test_an_ended_access_has_no_roles(staffed: World) -> None:
    access = staffed.access("al", "output out1", "A")
    staffed.edit(Access, access.id, ended_at=START)
    subject = of_access(staffed, access)
    assert (roles(subject), subject.barred) == (set(), "the access has ended")


def test_many_accesses_at_once_are_as_each_alone(staffed: World, catalog: Catalog) -> None:
    staffed.user("bob", "D")
    login = staffed.session("bob", "D")
    made = [
        staffed.access("al", "output out1", "A"),
        staffed.access("bob", "output out1", "D", session_id=login.id),
        staffed.access("bob", "output out1", "A"),
        staffed.access("al", "output out1"),
    ]
    with catalog.read() as session:
        rows = [row for one in made if (row := session.get(Access, one.id)) is not None]
        together = subjects_of_accesses(session, rows, START)
        assert subjects_of_accesses(session, [], START) == ()
    assert together == tuple(of_access(staffed, one) for one in made)
    assert [roles(subject) for subject in together] == [{"A", "B", "C"}, {"D"}, set(), set()]
