"""What a new role expression changes for subscriptions and quarantines, and what it does not."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from catalog.clearance import Clearance
from catalog.delivery_classes import delivery_of
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.label_rule import BySender
from catalog.label_texts import texts_of
from catalog.models import (
    Access,
    DeliveryClass,
    Grant,
    OutputInput,
    OutputRow,
    PolicyRow,
    QueryAsRole,
    QueryRow,
    StreamRow,
)
from catalog.placement import Placement
from catalog.role_view import RoleView
from catalog.runs import FanOutClass, QueryRun
from catalog.schema import Type
from catalog.stored_form import to_stored
from catalog.wanted import wanted_runs
from secadmin.control.role_texts import register_texts
from secadmin.control.settlement import Settlement
from tests.unit.secadmin.control.place import IN1, IN2, Place

BOTH = Label.of(IN1, IN2)


@pytest.fixture
def ward(place: Place) -> Place:
    """The stream in1 has a label rule; bob, ann and joe have R, and more roles each."""
    world = place.world
    one, two = (world.get_object(f"stream {name}") for name in ("in1", "in2"))
    world.edit(StreamRow, one.id, label_rule=to_stored(BySender()))
    for output in ("out1", "out3"):
        for stream in (one, two):
            number = world.get_object(f"output {output}").id
            world.add(OutputInput(output_id=number, relation_id=stream.id))
    for user, role in {"bob": "doctor", "ann": "nurse"}.items():
        if user == "ann":
            world.user("ann")
        world.member(user, role)
        if user != "bob":
            world.member(user, "R")
    world.member("joe", "R")
    return place


def access(place: Place, user: str, *roles: str, what: str = "output out1") -> Access:
    return place.world.access(user, what, "R", *roles)


def register(place: Place, *texts: str) -> set[str]:
    """Register the texts of in1; gives the topics that Kafka is told about."""
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        register_texts(settlement, place.world.get_object("stream in1").id, texts)
        change.audit("register", "test")
    return settlement.topics


def label_of(place: Place, text: str) -> Label:
    """The label of a tuple of in1 with this expression, which is registered."""
    with place.catalog.read() as session:
        return Label.of(IN1) | texts_of(session)[place.world.get_object("stream in1").id][text]


def fanned_out(place: Place, holder: Access) -> list[FanOutClass]:
    """What the engine delivers to the topics of an access."""
    topics = place.topics(holder)
    with place.catalog.read() as session:
        runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
    return [each for run in runs for each in run.classes if each.topic in topics]


def sees(place: Place, holder: Access, label: Label) -> int:
    """How many topics of the access take a result with this label."""
    open_all(place)
    return sum(each.delivery.takes(label, BOTH) for each in fanned_out(place, holder))


def open_all(place: Place) -> None:
    """Let the engine deliver to all classes."""
    with place.catalog.change("test") as change:
        for row in change.session.query(DeliveryClass):
            row.opened_at = change.now
        change.audit("open", "test")


def test_a_role_that_is_named_first_divides_those_that_were_alike(ward: Place) -> None:
    doctor, nurse = access(ward, "bob", "doctor"), access(ward, "ann", "nurse")
    ward.settle()
    assert ward.topic(doctor) == ward.topic(nurse), "no expression tells them apart"
    shared = ward.topic(doctor)
    assert register(ward, "doctor"), "its holders get more"
    assert set(ward.topics(nurse)) == {shared}
    assert len(ward.topics(doctor)) == 2
    label = label_of(ward, "doctor")
    assert (sees(ward, doctor, label), sees(ward, nurse, label)) == (1, 0)
    for each in (doctor, nurse):
        assert sees(ward, each, Label.of(IN1)) == 1
        assert sees(ward, each, Label.of(IN2)) == 1
    assert ward.withdrawals() == set(), "nobody loses anything"


def test_a_new_clause_of_known_roles_belongs_to_the_classes_at_once(ward: Place) -> None:
    register(ward, "doctor", "nurse")
    doctor, nurse = access(ward, "bob", "doctor"), access(ward, "ann", "nurse")
    neither = access(ward, "joe")
    ward.settle()
    before = {each.id: set(ward.topics(each)) for each in (doctor, nurse, neither)}
    assert register(ward, "doctor | nurse", "doctor & nurse") == set()
    ward.settle()
    assert {each.id: set(ward.topics(each)) for each in (doctor, nurse, neither)} == before
    either, both = label_of(ward, "doctor | nurse"), label_of(ward, "doctor & nurse")
    assert [sees(ward, each, either) for each in (doctor, nurse, neither)] == [1, 1, 0]
    assert [sees(ward, each, both) for each in (doctor, nurse, neither)] == [0, 0, 0]


def test_without_the_streams_own_category_a_role_gives_nothing(ward: Place) -> None:
    register(ward, "doctor")
    ward.revoke("READ TUPLE", "stream in1")
    ward.revoke("READ TUPLE", "stream in2")
    doctor = access(ward, "bob", "doctor")
    ward.settle()
    assert ward.topics(doctor) == {}


def test_equal_rights_share_a_class_and_others_do_not(ward: Place) -> None:
    register(ward, "doctor")
    ward.world.member("joe", "doctor")
    ward.world.member("joe", "nurse")
    first = access(ward, "bob", "doctor")
    second = access(ward, "joe", "doctor", "nurse")
    other = access(ward, "ann", "nurse")
    ward.settle()
    assert ward.topic(first) == ward.topic(second), "no expression names the nurse"
    assert ward.topic(first) != ward.topic(other)


def test_a_quarantine_is_for_its_keeper_with_all_clauses(ward: Place) -> None:
    """Bob may not change the stream's permissions, joe owns it."""
    bob = ward.world.access("bob", "stream in1", "R", "doctor")
    joe = ward.world.access("joe", "stream in1", "R")
    for each in (bob, joe):
        ward.world.edit(Access, each.id, kind="quarantine")
    ward.settle()
    assert ward.topic(bob) is None
    assert ward.topic(joe) == "quarantine.in1"
    assert register(ward, "doctor") == {"quarantine.in1"}
    assert ward.topic(joe) is None, "a refused record may be for doctors alone"
    ward.world.grant("R", "CHANGE PERM", "stream in1")
    ward.settle()
    assert ward.topic(bob) == "quarantine.in1"


def test_weak_delivery_needs_every_clause(ward: Place) -> None:
    register(ward, "doctor")
    ward.world.edit(OutputRow, ward.world.get_object("output out1").id, weak=True)
    nurse = access(ward, "ann", "nurse")
    ward.settle()
    open_all(ward)
    (weak,) = fanned_out(ward, nurse)
    assert weak.weak
    assert not weak.delivery.takes(label_of(ward, "doctor") | Label.of(IN2), BOTH)
    assert weak.delivery.takes(BOTH, BOTH)
    assert weak.clearance == Clearance(BOTH.bits)


def name_roles(ward: Place, *roles: str) -> None:
    """Let the query be for these roles, as AS role[, role] does."""
    query = ward.world.get_object("query q").id
    ward.world.edit(QueryRow, query, narrowed=True)
    for role in roles:
        ward.world.add(QueryAsRole(query_id=query, role_id=ward.world.get_role(role)))


def test_a_query_as_one_role_counts_no_other_role(ward: Place) -> None:
    """The results of `AS doctor SELECT ...` come by the role doctor and its juniors alone."""
    world = ward.world
    register(ward, "doctor", "nurse")
    for role in ("doctor", "nurse"):
        for stream in ("in1", "in2"):
            world.grant(role, "READ TUPLE", f"stream {stream}")
    world.member("bob", "nurse")
    bob = access(ward, "bob", "doctor", "nurse")
    joe = access(ward, "joe")
    name_roles(ward, "doctor")
    ward.settle()
    assert sees(ward, bob, label_of(ward, "doctor")) == 1
    assert sees(ward, bob, label_of(ward, "nurse")) == 0
    assert ward.topics(joe) == {}, "joe reads by R, which is no doctor"


def test_a_query_as_several_roles_counts_these_and_their_juniors(ward: Place) -> None:
    """AS doctor, nurse: a tuple for both roles is seen by who has both active, and by no third."""
    world = ward.world
    world.role("chief", ["nurse"])
    for user, role in (("bob", "surgeon"), ("bob", "chief"), ("joe", "surgeon")):
        world.member(user, role)
    register(ward, "doctor & nurse", "nurse", "surgeon")
    for role in ("doctor", "nurse", "surgeon"):
        for stream in ("in1", "in2"):
            world.grant(role, "READ TUPLE", f"stream {stream}")
    both = access(ward, "bob", "doctor", "chief", "surgeon")
    doctor, surgeon = access(ward, "bob", "doctor"), access(ward, "joe", "surgeon")
    name_roles(ward, "doctor", "nurse")
    ward.settle()
    of_both, of_nurse, of_surgeon = (
        label_of(ward, text) for text in ("doctor & nurse", "nurse", "surgeon")
    )
    assert [sees(ward, both, each) for each in (of_both, of_nurse, of_surgeon)] == [1, 1, 0]
    assert [sees(ward, doctor, each) for each in (of_both, of_nurse, of_surgeon)] == [0, 0, 0]
    assert sees(ward, doctor, Label.of(IN1)) == 1
    assert ward.topics(surgeon) == {}


def test_no_role_counts_when_all_that_a_query_names_are_removed(ward: Place) -> None:
    reader = access(ward, "joe")
    ward.settle()
    assert ward.topics(reader)
    name_roles(ward)
    ward.settle()
    assert ward.topics(reader) == {}


def test_exact_match_takes_no_result_that_two_roles_cover_only_together(ward: Place) -> None:
    """000 §5.2.1: a partition for each role. Each result comes once, also by two roles."""
    world = ward.world
    register(ward, "doctor", "nurse", "doctor | nurse")
    world.member("bob", "nurse")
    for role in ("doctor", "nurse"):
        for stream in ("in1", "in2"):
            world.grant(role, "READ TUPLE", f"stream {stream}")
    output = world.get_object("output out1").id
    world.edit(OutputRow, output, placement=Placement.ROLES)
    both, doctor = access(ward, "bob", "doctor", "nurse"), access(ward, "bob", "doctor")
    ward.settle()
    labels = [label_of(ward, text) for text in ("doctor", "nurse", "doctor | nurse")]
    cumulative = labels[0] | labels[1]
    assert [sees(ward, both, each) for each in (*labels, cumulative)] == [1, 1, 1, 0]
    assert [sees(ward, doctor, each) for each in (*labels, cumulative)] == [1, 0, 1, 0]
    assert [len(each.ways) for each in fanned_out(ward, both)] == [2]
    # A role that is senior to both is one role, and sees what both see together.
    world.role("chief", ["doctor", "nurse"])
    world.member("bob", "chief")
    chief = access(ward, "bob", "chief", "nurse")
    ward.settle()
    assert [sees(ward, chief, each) for each in (*labels, cumulative)] == [1, 1, 1, 1]
    assert [each.ways for each in fanned_out(ward, chief)] == [()]


def access_by_two_roles(ward: Place, placement: Placement) -> Access:
    """Bob reads out1, whose results are divided there, with two roles that each see some of in1."""
    world = ward.world
    register(ward, "doctor", "nurse")
    world.member("bob", "nurse")
    for role in ("doctor", "nurse"):
        world.grant(role, "READ TUPLE", "stream in1")
    world.edit(OutputRow, world.get_object("output out1").id, placement=placement)
    both = access(ward, "bob", "doctor", "nurse")
    ward.settle()
    return both


@pytest.mark.parametrize("placement", sorted(set(Placement) - {Placement.ROLES}))
def test_elsewhere_roles_count_together(ward: Place, placement: Placement) -> None:
    both = access_by_two_roles(ward, placement)
    delivery = delivery_of(ward.class_of(both))
    assert delivery is not None
    assert delivery.ways == ()
    texts = [label_of(ward, text) for text in ("doctor", "nurse")]
    assert [sees(ward, both, each) for each in (*texts, texts[0] | texts[1])] == [1, 1, 1]


def test_by_exact_match_a_role_that_sees_not_all_by_itself_does_not_count(ward: Place) -> None:
    world, both = ward.world, access_by_two_roles(ward, Placement.ROLES)
    labels = [label_of(ward, text) for text in ("doctor", "nurse")]
    assert [sees(ward, both, each) for each in labels] == [1, 1]
    few = RoleView(Call("=", (AttributeRef("a"), Literal("x", Type.STRING))))
    stream, doctor = world.get_object("stream in1").id, world.get_role("doctor")
    world.add(PolicyRow(stream_id=stream, role_id=doctor, name="few", view=to_stored(few)))
    ward.settle()
    assert [sees(ward, both, each) for each in labels] == [0, 1]


def test_a_role_that_is_lost_leaves_the_exact_results_of_the_others(ward: Place) -> None:
    """The topic of both roles is cut at once. A smaller class takes its place."""
    world, both = ward.world, access_by_two_roles(ward, Placement.ROLES)
    before = ward.topic(both)
    target = world.get_object("stream in1").id
    with ward.catalog.change("test") as change:
        nurse = select(Grant).where(
            Grant.role_id == world.get_role("nurse"), Grant.object_id == target
        )
        change.session.delete(change.session.scalars(nurse).one())
        change.audit("revoke", "test")
    ward.settle()
    assert {topic for _, topic in ward.withdrawals()} == {before}
    assert [sees(ward, both, label_of(ward, text)) for text in ("doctor", "nurse")] == [1, 0]
