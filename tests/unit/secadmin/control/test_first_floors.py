"""A new sender's first floor has all that its user could read since it may send (001 §3).

The plan: from the change that gives SEND on, the row of the sender has a floor, so it remembers.
Until it is `stamped`, ingest does not read the topic, and nothing is withheld from the user. So
what the user may read can grow and shrink meanwhile. Rights are taken inside operations alone, and
these run one by one. So each operation first adds to the floor what the user can read just then:
nothing that was readable between two operations is missed, whatever the second one takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from sqlalchemy import select

from catalog.conflict_classes import levels_of
from catalog.floors import readable, withheld_from
from catalog.label import PUBLIC, Label, combine
from catalog.models import OutputRow, SenderRow, User
from catalog.permission import ObjectKind, Permission
from catalog.wanted import wanted_runs
from secadmin.control import conflict_classes, grants, people, streams, walls
from secadmin.control.floors import lower_floor, show_floors
from secadmin.control.work import Caller
from tests.unit.catalog.world import World
from tests.unit.secadmin.control.floored import Floored, let_joe_administer
from tests.unit.secadmin.control.place import IN1, IN2, add_stream

LONE = 11


@dataclass
class Desk:
    """Joe may change all. Ann reads in2 and the stream lone, by two ways, and will send to in1."""

    floored: Floored
    joe: Caller

    @property
    def world(self) -> World:
        return self.floored.place.world

    def give_send(self, role: str = "writer") -> None:
        """Let ann send to in1. Its topic is there soon, and no reader has restarted."""
        send = [Permission.SEND]
        grants.grant(self.floored.platform, self.joe, role, send, ObjectKind.STREAM, "in1")
        self.world.edit(SenderRow, self.row().id, opened_at=self.floored.platform.clock())

    def revoke(self, role: str, permission: Permission, stream: str) -> None:
        asked = (role, [permission], ObjectKind.STREAM, stream)
        grants.revoke(self.floored.platform, self.joe, *asked)

    def row(self) -> SenderRow:
        """The newest sender row of ann."""
        with self.floored.place.catalog.read() as session:
            own = select(SenderRow).join(User, User.id == SenderRow.user_id)
            own = own.where(User.name == "ann").order_by(SenderRow.id.desc())
            found = session.scalars(own).first()
            assert found is not None
            return found

    def added(self) -> Label | None:
        """What ingest adds to what ann sent; None while it does not read it."""
        number = self.row().id
        with self.floored.place.catalog.read() as session:
            found = [each for run in wanted_runs(session) for each in getattr(run, "streams", ())]
        senders = [each for stream in found for each in stream.senders if each.id == number]
        return senders[0].floor if senders else None

    def readable(self) -> Label:
        with self.floored.place.catalog.read() as session:
            return readable(session, session.get_one(User, self.world.get(User, "ann").id))

    def level(self) -> Label:
        with self.floored.place.catalog.read() as session:
            return combine(levels_of(session, [self.world.get(User, "ann").id]).values())


@pytest.fixture
def desk(floored: Floored) -> Desk:
    world = floored.place.world
    joe = let_joe_administer(world)
    add_stream(world, "lone", LONE)
    world.grant("reader", "READ TUPLE", "stream in2")
    world.grant("reader", "READ TUPLE", "stream lone")
    world.role("upper", ["reader"])
    world.role("writer")
    world.user("ann", "upper", "writer")
    return Desk(floored, joe)


def lock(desk: Desk) -> None:
    people.set_locked(desk.floored.platform, desk.joe, "ann", locked=True)


def take_read(desk: Desk) -> None:
    for stream in ("in2", "lone"):
        desk.revoke("reader", Permission.READ_TUPLE, stream)


def take_role(desk: Desk) -> None:
    people.unassign_role(desk.floored.platform, desk.joe, "ann", "upper")


def remove_role(desk: Desk) -> None:
    people.remove_role(desk.floored.platform, desk.joe, "reader")


def take_junior(desk: Desk) -> None:
    people.remove_seniority(desk.floored.platform, desk.joe, "upper", "reader")


def remove_stream(desk: Desk) -> None:
    streams.remove_stream(desk.floored.platform, desk.joe, "lone")


def take_all(desk: Desk) -> None:
    """Also SEND: what is left in the topic is ingested."""
    take_role(desk)
    desk.revoke("writer", Permission.SEND, "in1")
    lock(desk)


TAKING = (lock, take_read, take_role, remove_role, take_junior, remove_stream, take_all)


@pytest.mark.parametrize("take", TAKING)
def test_what_is_taken_before_the_first_floor_is_in_it(
    desk: Desk, take: Callable[[Desk], None]
) -> None:
    desk.give_send()
    assert desk.added() is None, "queries do not know the categories"
    take(desk)
    assert desk.added() is None, "they still do not"
    desk.floored.rise()
    assert desk.added() == Label.of(IN2, LONE)


@pytest.mark.parametrize("take", TAKING)
def test_what_came_and_went_meanwhile_is_in_it(desk: Desk, take: Callable[[Desk], None]) -> None:
    desk.give_send()
    desk.floored.step()
    desk.world.grant("reader", "READ TUPLE", "stream in1")
    take(desk)
    desk.floored.rise()
    assert desk.added() == Label.of(IN1, IN2, LONE)


def test_a_level_that_is_taken_is_in_it(desk: Desk) -> None:
    platform = desk.floored.platform
    conflict_classes.add_class(platform, desk.joe, "banks", ["x", "y"])
    walls.set_level(platform, desk.joe, "banks", "ann", "x")
    was = desk.level()
    assert was.bits
    desk.give_send()
    walls.set_level(platform, desk.joe, "banks", "ann", "y")
    then = desk.level()
    walls.take_level(platform, desk.joe, "banks", "ann")
    desk.floored.rise()
    assert desk.added() == Label.of(IN2, LONE) | was | then


def test_what_was_taken_before_send_is_not_in_it(desk: Desk) -> None:
    take_read(desk)
    desk.give_send()
    assert desk.added() == PUBLIC, "it reads nothing, so ingest reads its topic at once"


def test_who_sends_in_spite_of_a_lock_has_the_floor_of_what_it_reads_without(desk: Desk) -> None:
    lock(desk)
    assert desk.readable() == Label.of(IN2, LONE), "it can read them as soon as it is unlocked"
    desk.give_send()
    desk.floored.rise()
    assert desk.added() == Label.of(IN2, LONE)


def test_nothing_is_withheld_until_the_first_floor_is_taken(desk: Desk) -> None:
    """But it gets no weak delivery: it would show parts of what the floor will not have."""
    place = desk.floored.place
    desk.world.edit(OutputRow, desk.world.get_object("output out1").id, weak=True)
    for permission in ("VIEW OBJECT", "SUBSCRIBE"):
        desk.world.grant("reader", permission, "output out1")
    access = desk.world.access("ann", "output out1", "reader", "upper")
    desk.world.member("ann", "reader")
    place.settle()
    assert place.class_of(access).weak
    desk.give_send()
    place.settle()
    assert not place.class_of(access).weak
    assert desk.floored.reads(access).bits & Label.of(IN2).bits
    ann = desk.world.get(User, "ann").id
    with place.catalog.read() as session:
        assert withheld_from(session, [ann]) == {ann: PUBLIC}
    desk.floored.rise()
    assert desk.floored.reads(access).bits & Label.of(IN2).bits


def test_a_floor_that_waits_is_neither_shown_nor_lowered(desk: Desk) -> None:
    """Lowered, it would never be taken, and ingest would never read the topic."""
    desk.give_send()
    platform = desk.floored.platform
    assert [each.user for each in show_floors(platform, desk.joe, "in1")] == []
    with pytest.raises(Exception, match="has no floor"):
        lower_floor(platform, desk.joe, "in1", "ann")
    desk.floored.rise()
    shown = {each.user: each for each in show_floors(platform, desk.joe, "in1")}
    assert shown["ann"].applied and shown["ann"].floor
    lower_floor(platform, desk.joe, "in1", "ann")
    assert desk.added() == PUBLIC


def test_a_refused_operation_takes_nothing_and_so_it_notes_nothing(desk: Desk) -> None:
    desk.give_send()
    before = desk.row().floor
    desk.world.grant("reader", "READ TUPLE", "stream in1")
    with pytest.raises(Exception, match="no user"):
        people.set_locked(desk.floored.platform, desk.joe, "nobody", locked=True)
    assert desk.row().floor == before
    take_read(desk)
    desk.floored.rise()
    assert desk.added() == Label.of(IN1, IN2, LONE)
