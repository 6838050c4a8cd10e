"""Conflict classes: what ends when one is removed."""

from __future__ import annotations

from sqlalchemy import select

from catalog.models import Company, FloorCategory, StreamRow, User, UserLevel
from catalog.wanted import generation
from secadmin.control.conflict_classes import add_class, remove_class
from tests.unit.secadmin.control.calls import Calls
from tests.unit.secadmin.control.floored import Floored


def test_what_a_removed_class_showed_ends_with_the_call(floored: Floored) -> None:
    """A floor brought its company into a stream that has no rule for companies."""
    place, world = floored.place, floored.place.world
    calls = Calls(place)
    add_class(calls.platform, calls.administrator, "law", ["ACME"])
    with place.catalog.read() as session:
        company = session.scalars(select(Company.bit)).one()
    stream, bob = world.get_object("stream in1").id, world.get(User, "bob").id
    number = world.get_object("conflict-class law").id
    world.add(UserLevel(user_id=bob, class_id=number, part="ACME", by_choice=False))
    world.edit(StreamRow, stream, floored=False)
    world.add(FloorCategory(stream_id=stream, bit=company, applied=True))
    access = place.access("bob")
    place.settle()
    before = floored.reads(access)
    assert before.bits >> company & 1
    topics, changes = set(place.topics(access)), changes_of(floored)
    remove_class(calls.platform, calls.administrator, "law")
    assert not floored.reads(access).bits >> company & 1
    assert topics <= calls.told[-1], "Kafka takes the topics away before the call returns"
    assert changes_of(floored) > changes, "ingest gives the level to nothing any more"


def changes_of(floored: Floored) -> int:
    with floored.place.catalog.read() as session:
        return generation(session)
