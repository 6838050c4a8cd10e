"""What an access gets when its rights grow, and loses when they shrink."""

from __future__ import annotations

import pytest

from catalog.label import Label
from catalog.models import Access, OutputInput, OutputRow
from catalog.placement import Placement
from catalog.plan import Aggregation, Plan, Window
from catalog.stored_form import from_stored, to_stored
from secadmin.control.settlement import Settlement
from tests.plans import grouped, updating
from tests.unit.secadmin.control.place import IN1, IN2, Place, add_output


def test_less_clearance_takes_the_topic_and_gives_another(place: Place) -> None:
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.revoke("READ TUPLE", "stream in2")
    assert place.settle() == {before, place.topic(access)}
    assert place.topic(access) not in (None, before)
    assert place.class_of(access).clearance == Label.of(IN1).to_wire()
    assert place.withdrawals() == {(access.principal, before)}
    # What grows again keeps what it has; the class that is there is for who begins with it.
    less = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    place.settle()
    assert less in place.topics(access) and before not in place.topics(access)
    place.world.member("joe", "R")
    another = place.access("joe")
    place.settle(Access.id == another.id)
    assert place.topic(another) == before


@pytest.mark.parametrize(
    ("kind", "what", "permissions"),
    [
        ("output", "output out1", ("VIEW OBJECT", "SUBSCRIBE")),
        ("output", "output out2", ("VIEW OBJECT", "SUBSCRIBE")),
        ("quarantine", "stream in1", ("VIEW OBJECT", "READ TUPLE")),
        ("send", "stream in1", ("VIEW OBJECT", "SEND")),
    ],
)
def test_without_one_of_its_rights_an_access_reaches_nothing(
    place: Place, kind: str, what: str, permissions: tuple[str, str]
) -> None:
    access = place.access(what=what, kind=kind)
    for permission in permissions:
        place.settle()
        before = str(place.topic(access))
        place.revoke(permission, what)
        assert place.settle() == {before}
        assert place.topics(access) == {}
        assert place.read(access).ended_at is None
        assert (access.principal, before) in place.withdrawals()
        place.world.grant("R", permission, what)
    place.settle()
    assert place.topic(access) is not None


def test_rights_that_grow_keep_the_topic_and_get_one_more(place: Place) -> None:
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    first = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    told = place.settle()
    assert first not in told, "Kafka has nothing to do with the topic that stays"
    assert place.withdrawals() == set()
    (second,) = place.topics(access).keys() - {first}
    assert told == {second}
    whole, difference = place.classes(first, second)
    assert (whole.clearance, whole.beyond) == (Label.of(IN1).to_wire(), None)
    assert difference.clearance == Label.of(IN1, IN2).to_wire()
    assert difference.beyond == Label.of(IN1).to_wire()
    # And what is taken again is in the one that was added.
    place.revoke("READ TUPLE", "stream in2")
    assert place.settle() == {second}
    assert place.withdrawals() == {(access.principal, second)}
    assert place.topics(access).keys() == {first}


def test_one_call_gives_and_takes(place: Place) -> None:
    """As SEND does, which takes an aggregate; here one stream goes and another one comes."""
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.revoke("READ TUPLE", "stream in1")
    place.world.grant("R", "READ TUPLE", "stream in2")
    assert place.settle() == {before, place.topic(access)}
    assert place.withdrawals() == {(access.principal, before)}
    assert place.class_of(access).clearance == Label.of(IN2).to_wire()


@pytest.mark.parametrize("by", ["weak delivery", "updates", "updates of what is read"])
def test_elsewhere_a_whole_class_is_opened_beside(place: Place, by: str) -> None:
    output = place.world.get_object("output out1").id
    with place.catalog.read() as session:
        plan = from_stored(Plan, session.get_one(OutputRow, output).plan)
    updates = updating(grouped(plan.root, Window(1_000, 1_000), (), ()))
    if by == "weak delivery":
        place.world.edit(OutputRow, output, weak=True)
    elif by == "updates":
        place.world.edit(OutputRow, output, plan=to_stored(updates))
    else:
        add_output(place.world, "sums", updates)
        read = place.world.get_object("output sums").id
        place.world.add(OutputInput(output_id=output, relation_id=read))
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    place.settle()
    assert place.withdrawals() == set(), "both are read until the new one is fed"
    assert place.topics(access)[before].leaving
    found = place.class_of(access)
    assert (found.clearance, found.beyond) == (Label.of(IN1, IN2).to_wire(), None)
    # Taken before it was fed: its reader goes on where it was.
    place.revoke("READ TUPLE", "stream in2")
    assert place.settle() == {found.topic}
    assert place.topic(access) == before


def test_what_is_replaced_is_cut(place: Place) -> None:
    place.world.edit(OutputRow, place.world.get_object("output out1").id, weak=True)
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    place.settle()
    after = place.topic(access)
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.cut_leaving([change.session.get_one(Access, access.id)])
        change.audit("cut", "test")
    assert settlement.topics == {before}
    assert place.withdrawals() == {(access.principal, before)}
    assert place.topics(access).keys() == {after}


def test_settling_twice_in_one_change_is_settling_once(place: Place) -> None:
    access = place.access()
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.settle(Access.id == access.id)
        settlement.settle(Access.id > 0)
        change.audit("settle", "test")
    assert place.withdrawals() == set()
    assert settlement.topics == {place.topic(access)}


def _count(place: Place, placement: Placement) -> None:
    """Let the output count the tuples of each second."""
    output = place.world.get_object("output out1").id
    with place.catalog.read() as session:
        plan = from_stored(Plan, session.get_one(OutputRow, output).plan)
    counted = grouped(plan.root, Window(1_000, 1_000), (), (Aggregation("n", "count", None),))
    place.world.edit(*(OutputRow, output), placement=placement.value, plan=to_stored(Plan(counted)))


def _assert_that_growing_adds_a_difference(place: Place) -> None:
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    place.world.grant("R", "READ TUPLE", "stream in2")
    (second,) = place.settle()
    assert not any(row.leaving for row in place.topics(access).values())
    assert place.classes(second)[0].beyond == Label.of(IN1).to_wire()


def test_closed_windows_have_difference_classes_under_strong_semantics(place: Place) -> None:
    _count(place, Placement.SINK)
    _assert_that_growing_adds_a_difference(place)


def test_a_class_with_a_view_of_its_own_is_whole(place: Place) -> None:
    """Also where rights grow: windows of C' are no windows of C and some results more."""
    _count(place, Placement.SOURCES)
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    first = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    (second,) = place.settle()
    assert second != first, "the subscriber reads the first one until the other one is fed"
    assert {name: row.leaving for name, row in place.topics(access).items()} == {
        first: True,
        second: False,
    }
    _, whole = place.classes(first, second)
    assert (whole.clearance, whole.beyond) == (Label.of(IN1, IN2).to_wire(), None)
    assert place.withdrawals() == set()


def test_without_state_a_view_is_what_strong_semantics_gives(place: Place) -> None:
    output = place.world.get_object("output out1").id
    place.world.edit(OutputRow, output, placement=Placement.SOURCES.value)
    _assert_that_growing_adds_a_difference(place)
