"""Which delivery class each access reads."""

from __future__ import annotations

from itertools import count

import pytest
from sqlalchemy import Engine, event

from catalog.clearance import Clearance
from catalog.delivery import Delivery
from catalog.delivery_classes import delivery_of, is_divisible
from catalog.label import Label
from catalog.models import Access, DeliveryClass, Object, OutputRow, Session, User, Withdrawal
from catalog.placement import Placement
from catalog.subject import subject_of_session
from secadmin.control.settlement import Settlement, of_user
from tests.unit.secadmin.control.place import IN1, IN2, Place


def test_an_output_is_read_through_the_class_of_ones_clearance(place: Place) -> None:
    access = place.access()
    assert place.settle() == {place.topic(access)}
    found = place.class_of(access)
    assert found.topic == f"out.out1.{found.name}" and len(found.name) == 16
    assert (found.clearance, found.weak) == (Label.of(IN1, IN2).to_wire(), False)
    assert place.withdrawals() == set()
    # What is settled stays as it is.
    assert place.settle() == set()
    assert place.class_of(access).id == found.id


def test_equal_clearances_have_one_class(place: Place) -> None:
    place.world.user("eve")
    place.world.member("eve", "R")
    first, second = place.access(), place.access("eve")
    topics = place.settle()
    assert place.class_of(first).id == place.class_of(second).id
    assert len(topics) == 1
    place.world.role("S")
    place.world.grant("S", "READ TUPLE", "stream in1")
    third = place.world.access("bob", "output out1", "R", "S")
    place.world.member("bob", "S")
    assert place.settle() == {place.topic(first)}
    assert place.class_of(third).id == place.class_of(first).id


@pytest.mark.parametrize("outputs", [("out1", "out3"), ("out3", "out1")])
def test_no_output_has_the_class_of_another(place: Place, outputs: tuple[str, str]) -> None:
    """Also where their classes' clearances are equal."""
    place.world.member("joe", "R")
    topics: set[str | None] = set()
    for user, output in zip(("bob", "joe"), outputs, strict=True):
        access = place.access(user, f"output {output}")
        place.settle()
        assert place.class_of(access).output_id == access.object_id
        topics.add(place.topic(access))
    assert len(topics) == 2


@pytest.mark.parametrize("first", ["bob", "eve"])
def test_whose_rights_differ_reads_another_class(place: Place, first: str) -> None:
    place.world.user("eve", "S")
    for permission, what in (
        ("VIEW OBJECT", "output out1"),
        ("SUBSCRIBE", "output out1"),
        ("READ TUPLE", "stream in2"),
    ):
        place.world.grant("S", permission, what)
    bob, eve = place.access(), place.world.access("eve", "output out1", "S")
    told = place.settle(of_user(place.world.get(User, first))) | place.settle()
    assert told == {place.topic(bob), place.topic(eve)}
    assert place.class_of(eve).clearance == Label.of(IN2).to_wire()
    assert place.class_of(bob).clearance == Label.of(IN1, IN2).to_wire()


def test_without_any_clearance_only_what_is_public_is_read(place: Place) -> None:
    place.world.member("joe", "R")
    hidden, public = place.access(), place.access("joe", "output out2")
    for stream in ("stream in1", "stream in2"):
        place.revoke("READ TUPLE", stream)
    place.settle()
    assert place.topic(hidden) is None
    assert place.class_of(public).clearance == "0"


@pytest.mark.parametrize("owner", ["joe", "mia"])
def test_who_owns_reads_what_others_with_the_same_roles_do_not(place: Place, owner: str) -> None:
    place.world.member("joe", "R")
    place.world.user("mia", "R", id=1_000)
    number = place.world.get(User, owner).id
    place.world.edit(Object, place.world.get_object("output out1").id, owner_id=number)
    for permission in ("VIEW OBJECT", "SUBSCRIBE"):
        place.revoke(permission, "output out1")
    accesses = {user: place.access(user) for user in ("joe", "bob", "mia")}
    place.settle()
    assert {user for user, each in accesses.items() if place.topic(each) is not None} == {owner}


def test_weak_delivery_and_closed_classes_have_classes_of_their_own(place: Place) -> None:
    access = place.access()
    output = place.world.get_object("output out1").id
    seen: set[str | None] = set()
    for change in ({}, {"weak": True}, {"weak": False}):
        if change:
            place.world.edit(OutputRow, output, **change)
        place.settle()
        found = place.class_of(access)
        assert found.weak is change.get("weak", False)
        seen.add(found.topic)
    assert len(seen) == 2
    place.world.edit(DeliveryClass, place.class_of(access).id, closed_at=place.catalog.clock())
    place.settle()
    assert place.topic(access) not in seen


@pytest.mark.parametrize("unreadable", ["clearance", "beyond"])
def test_a_class_that_cannot_be_read_is_cut(place: Place, unreadable: str) -> None:
    access = place.access()
    place.settle()
    before = place.topic(access)
    place.world.edit(DeliveryClass, place.class_of(access).id, **{unreadable: "garbage"})
    place.settle()
    assert place.withdrawals() == {(access.principal, before)}
    assert place.topic(access) != before


def test_a_class_may_take_what_single_roles_cover(place: Place) -> None:
    access = place.access()
    place.settle()
    number, way = place.class_of(access).id, Label.of(IN1).to_wire()
    place.world.edit(DeliveryClass, number, ways=[way])
    both, one = Clearance.of(IN1, IN2), Clearance.of(IN1)
    assert delivery_of(place.class_of(access)) == Delivery(both, ways=(one,))
    place.world.edit(DeliveryClass, number, ways=[way, "garbage"])
    assert delivery_of(place.class_of(access)) is None


@pytest.mark.parametrize("placement", [Placement.APART, Placement.ROLES])
def test_nothing_is_split_if_each_class_has_results_of_its_own(
    place: Place, placement: Placement
) -> None:
    output = place.world.get_object("output out1").id
    with place.catalog.read() as session:
        assert is_divisible(session, output)
    place.world.edit(OutputRow, output, placement=placement)
    with place.catalog.read() as session:
        assert not is_divisible(session, output)


def test_a_new_access_gets_what_its_session_allows(place: Place) -> None:
    login, access = place.world.session("bob", "R"), place.access()
    place.world.add(
        Withdrawal(principal=access.principal, topic="x", decided_at=place.catalog.clock())
    )
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        subject = subject_of_session(change.session, change.session.get_one(Session, login.id))
        settlement.settle_new(change.session.get_one(Access, access.id), subject)
        change.audit("subscribe", "test")
    assert settlement.topics == {place.topic(access)}
    assert place.class_of(access).clearance == Label.of(IN1, IN2).to_wire()


def test_what_accesses_have_in_common_is_looked_up_once(place: Place) -> None:
    """However many there are: some more cost no statement more."""
    numbers = count(1)

    def statements(more: int) -> int:
        for _ in range(more):
            name = f"u{next(numbers)}"
            place.world.user(name, "R")
            place.access(name)
        seen: list[str] = []

        def note(_connection: object, _cursor: object, sql: str, *_rest: object) -> None:
            if sql.startswith("SELECT"):
                seen.append(sql)

        engine: Engine = place.catalog.engine
        event.listen(engine, "before_cursor_execute", note)
        try:
            place.settle()
        finally:
            event.remove(engine, "before_cursor_execute", note)
        return len(seen)

    statements(1)
    assert statements(2) == statements(6)
