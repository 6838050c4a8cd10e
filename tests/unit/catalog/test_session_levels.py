"""Sessions at a level: what a session may name, and what it and its accesses see (001 §3)."""

from __future__ import annotations

import pytest

from catalog.audit import Outcome
from catalog.conflict_class import level_of
from catalog.conflict_classes import add_class, add_company, conflict_classes
from catalog.errors import Denied
from catalog.login import Wanted, login
from catalog.models import Access, AuditEntry, Session, User, UserLevel
from catalog.passwords import Passwords
from catalog.session_levels import SessionLevel, from_stored, to_stored
from catalog.store import Catalog
from catalog.subject import subject_of_session, subjects_of_accesses
from tests.unit.catalog.world import START, World

GOOD = "correct horse battery"
CLASSES = {"COI1": ("1", "2"), "COI2": ("A", "B")}


@pytest.fixture
def market(world: World, passwords: Passwords) -> World:
    """Two conflict classes, and ann with T in the first and company A in the second one."""
    world.user("ann", "R", "S", password_hash=passwords.hash(GOOD))
    world.object("output out")
    for name, companies in CLASSES.items():
        obj = world.object(f"conflict-class {name}")
        with world.catalog.change("test") as change:
            found = add_class(change.session, obj)
            for company in companies:
                found = add_company(change.session, found, company)
            change.audit("test", name)
    set_level(world, "COI1", "T")
    set_level(world, "COI2", "A")
    return world


def class_id(world: World, name: str) -> int:
    return world.get_object(f"conflict-class {name}").id


def set_level(world: World, name: str, part: str | None, *, by_choice: bool = False) -> None:
    user, of = world.get(User, "ann").id, class_id(world, name)
    with world.catalog.change("test") as change:
        row = UserLevel(user_id=user, class_id=of, part=part, by_choice=by_choice)
        change.session.merge(row)
        change.audit("test", "level")


def shown(world: World, session_id: int) -> str:
    """The level of the session's subject."""
    with world.catalog.read() as session:
        subject = subject_of_session(session, session.get_one(Session, session_id))
        return level_of(subject.level, tuple(conflict_classes(session).values()))


def of_access(world: World, access: Access) -> str:
    with world.catalog.read() as session:
        row = session.get_one(Access, access.id)
        (subject,) = subjects_of_accesses(session, [row], START)
        return level_of(subject.level, tuple(conflict_classes(session).values()))


@pytest.mark.parametrize(
    ("wanted", "level"),
    [
        (None, "[T, A]"),
        ({}, "[T, A]"),
        ({"COI1": "1"}, "[1, A]"),
        ({"COI1": "T"}, "[T, A]"),
        ({"COI1": "2", "COI2": "_"}, "[2, ⊥]"),
        ({"COI1": "_", "COI2": "A"}, "[⊥, A]"),
    ],
)
def test_a_session_is_at_the_level_that_it_names(
    market: World,
    catalog: Catalog,
    passwords: Passwords,
    wanted: dict[str, str] | None,
    level: str,
) -> None:
    opened = login(catalog, passwords, "ann", GOOD, Wanted(level=wanted))
    assert shown(market, opened.session_id) == level
    words = {each.partition("=")[0] for each in opened.level}
    assert words == (wanted or {}).keys()


@pytest.mark.parametrize(
    ("name", "part"),
    [("COI2", "B"), ("COI2", "T"), ("COI1", "9"), ("COI9", "1"), ("COI9", "_"), ("COI1", "")],
)
def test_a_level_above_that_of_the_user_is_refused(
    market: World, catalog: Catalog, passwords: Passwords, name: str, part: str
) -> None:
    """In the same words for a class that there is not. No session is opened."""
    with pytest.raises(Denied) as refused:
        login(catalog, passwords, "ann", GOOD, Wanted(level={name: part}))
    assert f"does not dominate {part!r} in the conflict class {name!r}" in str(refused.value)
    with catalog.read() as session:
        assert session.query(Session).count() == 0
        entry = session.query(AuditEntry).order_by(AuditEntry.seq.desc()).first()
    assert entry is not None and (entry.action, entry.outcome) == ("login", Outcome.DENIED)


def test_a_session_follows_the_level_of_its_user_and_is_never_above_its_own(
    market: World, catalog: Catalog, passwords: Passwords
) -> None:
    opened = login(catalog, passwords, "ann", GOOD, Wanted(level={"COI1": "1"}))
    for part, level in (("1", "[1, A]"), ("2", "[⊥, A]"), ("T", "[1, A]"), (None, "[⊥, A]")):
        set_level(market, "COI1", part)
        assert shown(market, opened.session_id) == level
    set_level(market, "COI2", "T")
    assert shown(market, opened.session_id) == "[⊥, T]"


def test_a_kept_access_stays_at_the_level_of_the_session_that_made_it(market: World) -> None:
    level: SessionLevel = {class_id(market, "COI1"): "2"}
    kept, whole = (market.access("ann", "output out", role) for role in ("R", "S"))
    market.edit(Access, kept.id, level=to_stored(level))
    assert (of_access(market, kept), of_access(market, whole)) == ("[2, A]", "[T, A]")
    set_level(market, "COI1", "1")
    assert (of_access(market, kept), of_access(market, whole)) == ("[⊥, A]", "[1, A]")


def test_who_has_not_chosen_may_name_a_company_and_reads_none(
    market: World, catalog: Catalog, passwords: Passwords
) -> None:
    set_level(market, "COI1", None, by_choice=True)
    with pytest.raises(Denied):
        login(catalog, passwords, "ann", GOOD, Wanted(level={"COI1": "T"}))
    opened = login(catalog, passwords, "ann", GOOD, Wanted(level={"COI1": "1"}))
    assert shown(market, opened.session_id) == "[⊥, A]"
    set_level(market, "COI1", "1", by_choice=True)
    assert shown(market, opened.session_id) == "[1, A]"
    set_level(market, "COI1", "2", by_choice=True)
    assert shown(market, opened.session_id) == "[⊥, A]"


@pytest.mark.parametrize("level", [None, {}, {7: "T", 12: "_", 13: "7"}])
def test_a_level_is_read_as_it_was_stored(level: SessionLevel | None) -> None:
    assert from_stored(to_stored(level)) == level


def test_a_level_that_another_program_stored_in_its_own_way_is_not_read() -> None:
    """To read nothing of it would give the session the whole level of its user."""
    with pytest.raises(ValueError, match="version"):
        from_stored({"version": "2", "7": "_"})
