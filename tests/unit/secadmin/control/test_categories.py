"""Categories are never free again: what one user can take of them, and what goes on without any."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from catalog import category_shares
from catalog.authorizer import Authorizer
from catalog.category_kind import CategoryKind
from catalog.errors import Conflict
from catalog.label import MAX_CATEGORIES
from catalog.models import Access, CategoryRow, DeliveryClass, SchemaRow, User
from catalog.record_format import USUAL
from catalog.runs import QueryRun
from catalog.stored_form import to_stored
from catalog.subject import subject_of_user
from catalog.time_source import TimeSource
from catalog.wanted import wanted_runs
from secadmin.control.conflict_classes import add_class, add_company_to, remove_class
from secadmin.control.new_streams import StreamDefinition, add_stream
from secadmin.control.people import set_locked
from tests.unit.secadmin.control.calls import Calls
from tests.unit.secadmin.control.place import SCHEMA, Place
from tests.unit.secadmin.control.place import add_stream as stream_row

COMPANIES = [f"company {number}" for number in range(4)]


@pytest.fixture
def calls(place: Place, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """A user's objects take 12 categories at most."""
    monkeypatch.setattr(category_shares, "CATEGORIES_OF_USER", 12)
    return Calls(place)


def registered(place: Place) -> int:
    with place.catalog.read() as session:
        return session.scalar(select(func.count()).select_from(CategoryRow)) or 0


def fill(place: Place, bit: int = MAX_CATEGORIES - 1) -> None:
    """All categories up to this one are given."""
    place.world.add(CategoryRow(bit=bit, kind=CategoryKind.COMPANY))


def wanted(name: str) -> StreamDefinition:
    return StreamDefinition(name, "s", None, TimeSource.BROKER, None, 0, 1, 1, False, None, USUAL)


def test_nobody_uses_up_categories_by_classes_that_come_and_go(place: Place, calls: Calls) -> None:
    eve = calls.user("eve", "ADD CONFLICT CLASS")
    for number in range(2):
        add_class(calls.platform, eve, f"c{number}", COMPANIES)
        remove_class(calls.platform, eve, f"c{number}")
    before = registered(place)
    with pytest.raises(Conflict, match="10 are taken, this needs 5 more, and 2 would fit"):
        add_class(calls.platform, eve, "c2", COMPANIES)
    assert registered(place) == before
    add_class(calls.platform, eve, "c2", COMPANIES[:1])
    with pytest.raises(Conflict, match="let somebody who holds CHANGE SYSTEM add it"):
        add_company_to(calls.platform, eve, "c2", "one more")
    for number in range(3, 7):
        add_class(calls.platform, calls.administrator, f"c{number}", COMPANIES)
    ann = calls.user("ann", "ADD CONFLICT CLASS")
    add_class(calls.platform, ann, "of-ann", COMPANIES)


def test_who_holds_change_system_adds_a_company_beyond_the_owners_share(
    place: Place, calls: Calls
) -> None:
    eve, keeper = calls.user("eve", "ADD CONFLICT CLASS"), calls.administrator
    add_class(calls.platform, eve, "law", [f"c{number}" for number in range(11)])
    for right in ("VIEW OBJECT", "CHANGE PERM"):
        place.world.grant("roots", right, "conflict-class law")
    add_company_to(calls.platform, keeper, "law", "one more")
    with pytest.raises(Conflict, match="and 0 would fit"):
        add_company_to(calls.platform, eve, "law", "and one")


def test_the_last_categories_are_kept_for_administrators(place: Place, calls: Calls) -> None:
    eve = calls.user("eve", "ADD CONFLICT CLASS")
    fill(place, MAX_CATEGORIES - category_shares.KEPT_CATEGORIES - 4)
    add_class(calls.platform, eve, "law", COMPANIES[:2])
    with pytest.raises(Conflict, match="the last 4096 of 65536 categories are kept"):
        add_company_to(calls.platform, eve, "law", "x")
    add_class(calls.platform, calls.administrator, "banks", COMPANIES)


def test_a_stream_takes_of_the_share_and_makes_no_topic_beyond_it(
    place: Place, calls: Calls
) -> None:
    world, eve = place.world, calls.user("eve", "ADD STREAM", "ADD CONFLICT CLASS")
    keeper, made = calls.administrator, list[str]()
    world.add(SchemaRow(object_id=world.get_object("schema s").id, definition=to_stored(SCHEMA)))
    for role in ("eves", "roots"):
        world.grant(role, "VIEW OBJECT", "schema s")
    calls.platform.kafka.create_stream_topics = lambda name, *_, **__: made.append(name)
    add_class(calls.platform, eve, "law", [f"c{number}" for number in range(10)])
    add_stream(calls.platform, eve, wanted("mine"))
    with pytest.raises(Conflict, match="12 are taken, this needs 1 more"):
        add_stream(calls.platform, eve, wanted("more"))
    assert made == ["mine"]
    add_stream(calls.platform, keeper, wanted("more"))
    fill(place)
    with pytest.raises(Conflict, match="65536 categories, which are never free again"):
        add_stream(calls.platform, keeper, wanted("last"))
    assert made == ["mine", "more"]


def test_when_all_categories_are_given_only_new_ones_are_refused(
    place: Place, calls: Calls
) -> None:
    fill(place)
    with pytest.raises(Conflict, match="never free again: 65536 were given, and this needs 5"):
        add_class(calls.platform, calls.administrator, "law", COMPANIES)
    with place.catalog.read() as session:
        runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
    assert all(run.registered == MAX_CATEGORIES for run in runs)
    access = place.access("bob")
    place.settle()
    assert place.topic(access)
    set_locked(calls.platform, calls.administrator, "bob", locked=True)
    assert place.topics(access) == {}


def test_a_category_that_no_label_can_have_gives_nothing(place: Place) -> None:
    fill(place)
    stream_row(place.world, "high", MAX_CATEGORIES)
    for right in ("VIEW OBJECT", "READ TUPLE"):
        place.world.grant("R", right, "stream high")
    access = place.access("bob")
    for _ in range(3):
        place.settle(Access.id == access.id)
    with place.catalog.read() as session:
        assert len(session.scalars(select(DeliveryClass)).all()) == 1
        bob = subject_of_user(session, session.get_one(User, access.user_id))
        rights = Authorizer(session).clearance_of(bob).bits
        assert wanted_runs(session)
    assert 0 < rights.bit_length() <= MAX_CATEGORIES
