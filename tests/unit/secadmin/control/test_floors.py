"""Floors: what a user may read is in the label of what it sends before it reads it (001 §3)."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from catalog.categories import role_clauses
from catalog.clearance import Clearance
from catalog.engines import FIRST, INGEST
from catalog.floors import floor_of_user, readable
from catalog.label import MAX_WORDS, Label
from catalog.label_rule import BySender
from catalog.models import AuditEntry, CategoryRow, OutputRow, SenderRow, StreamRow, User
from catalog.sender_state import SenderState
from catalog.stored_form import to_stored
from catalog.wanted import generation, report_applied
from secadmin.control.floors import begin_floors, show_floors
from secadmin.control.people import set_locked
from secadmin.control.role_texts import register_texts
from secadmin.control.settlement import Settlement
from tests.unit.catalog.world import START
from tests.unit.secadmin.control.calls import Calls
from tests.unit.secadmin.control.floored import BOTH, IN3, Floored
from tests.unit.secadmin.control.place import IN1, IN2


def test_nothing_is_ingested_before_its_floor_is_known_to_all_readers(floored: Floored) -> None:
    assert floored.added() is None
    floored.step()
    assert floored.added("joe") == Label(), "joe reads nothing"
    assert floored.added() is None, "queries would not see tuples of in1 with the category of in2"
    floored.step()
    assert floored.added() is None, "no engine has followed"
    floored.engines_follow()
    floored.step()
    assert floored.added() == BOTH
    assert floored.row().stamped == floored.row().floor == BOTH.to_wire()


def test_a_query_that_still_runs_with_the_old_reach_holds_it_up(floored: Floored) -> None:
    floored.engines_follow()
    floored.step()
    with floored.place.catalog.bookkeeping() as session:
        for engine in (INGEST, FIRST):
            report_applied(session, engine, generation(session))
    floored.step()
    assert floored.added() is None, "its batch has not ended"
    floored.engines_follow()
    floored.step()
    assert floored.added() == BOTH


def test_a_right_shows_nothing_until_its_floor_is_added(floored: Floored) -> None:
    """No laundering: who reads a tuple of in3 cannot send its content without its category."""
    place = floored.place
    floored.rise()
    place.world.member("bob", "spare")
    one, three = place.access("bob"), place.world.access("bob", "output out4", "R", "spare")
    place.settle()
    assert (floored.reads(one), floored.reads(three)) == (BOTH, Label())
    before = set(place.topics(one))
    place.world.grant("R", "READ TUPLE", "stream in3")
    wanted = Label.of(IN1, IN2, IN3)
    for follow in (False, True, False):
        place.settle()
        assert floored.reads(three) == Label()
        if follow:
            floored.engines_follow()
        floored.step()
    assert floored.added() == wanted, "ingest should add it, and has not said that it does"
    floored.living.discard(INGEST)
    floored.engines_follow()
    floored.step()
    place.settle()
    assert floored.reads(three) == Label(), "nobody knows what a dead ingest does"
    floored.living.add(INGEST)
    floored.step()
    assert floored.reads(three) == Label.of(IN3)
    assert floored.told[-1] >= set(place.topics(three))
    assert set(place.topics(one)) >= before, "what the floor had is not touched"
    assert place.withdrawals() == set()


def test_a_floor_never_falls_with_the_rights(floored: Floored) -> None:
    """The user may still know what it has read, also when it gets SEND anew."""
    place = floored.place
    floored.rise()
    place.revoke("READ TUPLE", "stream in2")
    floored.rise()
    assert floored.added() == BOTH
    place.world.edit(SenderRow, floored.row().id, state=SenderState.GONE)
    number = place.world.get_object("stream in1").id
    with place.catalog.change("test") as change:
        user = change.session.scalars(select(User).where(User.name == "bob")).one()
        anew = SenderRow(stream_id=number, user_id=user.id, topic="in.in1.again", state="active")
        change.session.add(anew)
        begin_floors(change.session, [anew])
        change.audit("test", "test")
        assert anew.floor == anew.stamped == BOTH.to_wire(), "all readers know it already"


def test_what_an_administrator_lowered_stays_low(floored: Floored) -> None:
    floored.rise()
    place = floored.place
    place.world.edit(SenderRow, floored.row().id, lowered=True)
    assert floored.added() == Label()
    place.world.grant("R", "READ TUPLE", "stream in3")
    three = place.access("bob", "output out4")
    place.settle()
    floored.rise()
    assert floored.added() == Label()
    assert floored.reads(three) == Label.of(IN3), "nothing waits for a floor that does not rise"


def test_weak_delivery_is_not_for_a_user_with_a_floor(floored: Floored) -> None:
    """It would show parts of what the floor does not have."""
    place = floored.place
    output = place.world.get_object("output out1").id
    place.world.edit(OutputRow, output, weak=True)
    floored.rise()
    place.world.user("ann", "R")
    bob, ann = place.access("bob"), place.access("ann")
    place.settle()
    assert [place.class_of(each).weak for each in (bob, ann)] == [False, True]


def test_roles_stand_for_the_clauses_that_they_satisfy(floored: Floored) -> None:
    """A clause that comes later needs no other floor: who reads what bob wrote has bob's role."""
    place, world = floored.place, floored.place.world
    world.member("bob", "doctor")
    world.member("bob", "golfer")
    number = world.get_object("stream in2").id
    world.edit(StreamRow, number, label_rule=to_stored(BySender()))
    floored.rise()
    assert floored.added() == BOTH, "no expression names a role"

    def register(*texts: str, stream: str = "in2") -> None:
        with place.catalog.change("test") as change:
            of = world.get_object(f"stream {stream}").id
            register_texts(Settlement(change, change.now), of, texts)
            change.audit("register", "test")

    world.role("nurse")
    register("doctor | nurse")
    world.edit(StreamRow, world.get_object("stream in3").id, label_rule=to_stored(BySender()))
    register("golfer", stream="in3")
    bob = world.access("bob", "output out1", "R", "doctor")
    place.settle()
    doctor = role(floored, "doctor")
    assert not floored.reads(bob).bits >> doctor & 1, "it waits until the role is in the floor"
    floored.rise()
    assert floored.added() == BOTH | Label.of(doctor), "bob cannot read in3, where golfers count"
    assert floored.reads(bob).bits >> doctor & 1
    with place.catalog.read() as session:
        clauses = role_clauses(session)
    held = clauses.cleared(Clearance.of(IN1, IN2, doctor))
    assert held.covers(BOTH | Label.of(doctor))
    assert not clauses.cleared(Clearance.of(IN1, IN2)).covers(BOTH | Label.of(doctor))
    assert clauses.deciding(Label.of(doctor)) == Label.of(doctor)


def role(floored: Floored, name: str) -> int:
    with floored.place.catalog.read() as session:
        own = select(CategoryRow.bit).where(
            CategoryRow.role_id == floored.place.world.get_role(name)
        )
        return session.scalars(own).one()


def test_all_roles_count_active_or_not(floored: Floored) -> None:
    world = floored.place.world
    world.member("bob", "other")
    world.grant("other", "READ TUPLE", "stream in3")
    with floored.place.catalog.read() as session:
        bob = session.scalars(select(User).where(User.name == "bob")).one()
        assert readable(session, bob) == floor_of_user(session, bob.id) == Label.of(IN1, IN2, IN3)
        joe = session.scalars(select(User).where(User.name == "joe")).one()
        assert readable(session, joe) == Label()


UNREADABLE = ",".join(["0"] * (MAX_WORDS + 1))


def test_a_floor_that_cannot_be_read_holds_up_nobody_else(floored: Floored) -> None:
    place = floored.place
    bob = place.access("bob")
    floored.rise()
    place.settle()
    place.world.edit(SenderRow, floored.row().id, floor=UNREADABLE)
    place.world.grant("R", "READ TUPLE", "stream in3")
    floored.rise()
    assert floored.added() is None, "nobody knows what its tuples should carry"
    assert floored.added("joe") == Label()
    place.world.member("bob", "spare")
    three = place.world.access("bob", "output out4", "R", "spare")
    place.settle()
    assert floored.reads(bob) == BOTH, "that much is in all that was ingested"
    assert floored.reads(three) == Label(), "its floor does not rise"
    place.world.member("joe", "other")
    place.world.grant("other", "READ TUPLE", "stream in2")
    floored.rise()
    assert floored.added("joe") == Label.of(IN2)
    place.world.edit(SenderRow, floored.row().id, lowered=True)
    assert floored.added() == Label(), "an administrator may decide that nothing is added"


def test_all_is_withheld_where_nobody_knows_what_is_added(floored: Floored) -> None:
    place = floored.place
    bob = place.access("bob")
    floored.rise()
    place.settle()
    assert floored.reads(bob) == BOTH
    place.world.edit(SenderRow, floored.row().id, floor=UNREADABLE, stamped=UNREADABLE)
    floored.rise()
    topics = set(place.topics(bob))
    assert place.settle() >= topics
    assert floored.reads(bob) == Label()


@pytest.mark.parametrize("stamped", [None, UNREADABLE])
def test_a_user_whose_floor_cannot_be_read_loses_rights_as_any_other(
    floored: Floored, stamped: str | None
) -> None:
    place, calls = floored.place, Calls(floored.place)
    bob = place.access("bob")
    floored.rise()
    place.settle()
    row = floored.row()
    place.world.edit(SenderRow, row.id, floor=UNREADABLE, stamped=stamped or row.stamped)
    place.revoke("READ TUPLE", "stream in2")
    place.settle()
    assert not floored.reads(bob).bits >> IN2 & 1
    keeper = calls.administrator
    place.world.grant("roots", "VIEW OBJECT", "stream in1")
    (shown, _) = show_floors(calls.platform, keeper, "in1")
    assert (shown.user, shown.applied) == ("bob", False)
    assert "cannot be read" in shown.floor[0]
    set_locked(calls.platform, keeper, "bob", locked=True)
    assert place.topics(bob) == {}
    assert floored.added("joe") == Label()


def test_a_new_sender_waits_while_an_earlier_floor_cannot_be_read(floored: Floored) -> None:
    place = floored.place
    floored.rise()
    gone = floored.row().id
    place.world.edit(SenderRow, gone, state=SenderState.GONE, floor=UNREADABLE)
    number = place.world.get_object("stream in1").id
    with place.catalog.change("test") as change:
        user = change.session.scalars(select(User).where(User.name == "bob")).one()
        anew = SenderRow(
            stream_id=number,
            user_id=user.id,
            topic="in.in1.again",
            state=SenderState.ACTIVE,
            opened_at=START,
        )
        change.session.add(anew)
        begin_floors(change.session, [anew])
        change.audit("test", "test")
        assert anew.floor is None
    floored.rise()
    assert floored.added("again") is None


def test_each_rise_is_in_the_audit_log(floored: Floored) -> None:
    floored.rise()
    with floored.place.catalog.read() as session:
        own = select(AuditEntry).where(AuditEntry.action == "raise floors")
        entries = session.scalars(own).all()
        assert len(entries) >= 2
    floored.step()
    with floored.place.catalog.read() as session:
        assert len(session.scalars(own).all()) == len(entries), "nothing is left to be done"
