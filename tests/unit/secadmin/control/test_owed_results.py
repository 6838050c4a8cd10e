"""Which results a smaller class is owed, where several subscriptions and classes are there."""

from __future__ import annotations

from sqlalchemy import select, update

from catalog.models import Access, AccessTopic, Grant, Refill
from catalog.plan import Plan, Source, Union
from tests.unit.secadmin.control.place import Place, add_output, add_stream
from tests.unit.secadmin.control.test_refills import IN3, Ward, relation, ward

__all__ = ["ward"]


def widen(ward: Ward, *roles: str) -> None:
    """An output over three streams, which these roles may read."""
    world = ward.place.world
    wide = [relation(ward.place, name) for name in ("in1", "in2")]
    wide.append(add_stream(world, "in3", IN3))
    add_output(world, "wide", Plan(Union(tuple(map(Source, wide)))))
    for role in roles:
        world.role(role)
        for right, what in (
            *(("VIEW OBJECT", "output wide"), ("SUBSCRIBE", "output wide")),
            *(("VIEW OBJECT", "stream in3"), ("READ TUPLE", "stream in3")),
        ):
            world.grant(role, right, what)


def reads(place: Place, user: str, role: str, *streams: str) -> None:
    """Let a new user with this role read the streams and `out1`."""
    place.world.user(user, role)
    for what in ("output out1", *(f"stream {name}" for name in streams)):
        place.world.grant(role, "VIEW OBJECT", what)
        right = "SUBSCRIBE" if what.startswith("output") else "READ TUPLE"
        place.world.grant(role, right, what)


def lose(place: Place, role: str, stream: str) -> None:
    """The role may not read the stream any more; nothing is settled."""
    number = place.world.get_object(f"stream {stream}").id
    of_role = (Grant.role_id == place.world.get_role(role), Grant.object_id == number)
    with place.catalog.change("test") as change:
        found = select(Grant).where(Grant.permission == "READ TUPLE", *of_role)
        change.session.delete(change.session.scalars(found).one())
        change.audit("revoke", stream)


def test_it_is_owed_what_its_own_source_was_owed_and_nothing_of_others(ward: Ward) -> None:
    """Classes that were opened before and after its source are owed results of theirs."""
    widen(ward, "R")
    ward.place.world.member("joe", "R")
    ward.place.world.user("mia", "R")
    users = {"output out3": "mia", "output wide": "joe", "output out1": "bob"}
    accesses = [ward.subscribe(user, what) for what, user in users.items()]
    first = [str(ward.place.topic(each)) for each in accesses]
    ward.lose("in2")
    second = [str(ward.place.topic(each)) for each in accesses]
    owed = set(zip(first, second, strict=True))
    assert ward.refills() == owed
    begun = ward.clock()
    ward.clock.advance(seconds=1)
    lose(ward.place, "R", "in3")
    ward.place.settle()
    third = str(ward.place.topic(accesses[1]))
    assert ward.refills() == owed | {(first[1], third), (second[1], third)}
    with ward.place.catalog.read() as session:
        rows = {row.source: row.decided_at for row in session.scalars(select(Refill))}
    assert (rows[first[1]], rows[second[1]]) == (begun, ward.clock())


def test_it_is_owed_once_what_several_sources_were_owed(ward: Ward) -> None:
    """Bob and Eve begin with one class, are moved to two, and then to one again."""
    place = ward.place
    widen(ward, "R", "S")
    reads(place, "eve", "S", "in1", "in2")
    bob, eve = place.access(what="output wide"), place.world.access("eve", "output wide", "S")
    place.settle()
    ward.feed()
    first = str(place.topic(bob))
    assert place.topic(eve) == first
    lose(place, "R", "in3")
    lose(place, "S", "in2")
    place.settle()
    of_bob, of_eve = str(place.topic(bob)), str(place.topic(eve))
    assert ward.refills() == {(first, of_bob), (first, of_eve)}
    lose(place, "R", "in2")
    lose(place, "S", "in3")
    place.settle()
    both = str(place.topic(bob))
    assert place.topic(eve) == both
    assert ward.refills() == {
        *((first, of_bob), (first, of_eve)),
        *((first, both), (of_bob, both), (of_eve, both)),
    }


def test_who_is_moved_later_leaves_what_is_owed_as_it_is(ward: Ward) -> None:
    place = ward.place
    reads(place, "eve", "S", "in1", "in2")
    bob, eve = place.access(), place.world.access("eve", "output out1", "S")
    place.settle()
    ward.feed()
    before, begun = str(place.topic(bob)), ward.clock()
    for role, access in (("R", bob), ("S", eve)):
        lose(place, role, "in2")
        place.settle(Access.id == access.id)
        ward.clock.advance(seconds=1)
    smaller = str(place.topic(bob))
    assert place.topic(eve) == smaller
    with place.catalog.read() as session:
        (row,) = session.scalars(select(Refill))
    assert (row.source, row.decided_at) == (before, begun)


def test_it_is_of_no_account_that_other_classes_are_fed(ward: Ward) -> None:
    """Some were opened before the class, and some after it."""
    place = ward.place
    reads(place, "eve", "S", "in1")
    place.world.user("mia", "R")
    place.world.member("joe", "R")
    accesses: list[Access] = []
    for user, what, role in (
        *(("joe", "output out2", "R"), ("bob", "output out1", "R")),
        *(("eve", "output out1", "S"), ("mia", "output out3", "R")),
    ):
        accesses.append(place.world.access(user, what, role))
        place.settle()
    before, smaller = (str(place.topic(each)) for each in accesses[1:3])
    with place.catalog.bookkeeping() as session:
        others = update(AccessTopic).where(AccessTopic.topic != smaller)
        session.execute(others.values(fed_at=ward.clock()))
    ward.lose()
    assert place.topic(accesses[1]) == smaller
    assert {source for source, topic in ward.refills() if topic == smaller} == {before}
