"""The topic of a backfill: it is beside the chain of a subscription, and nobody else has it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from catalog.errors import Denied
from catalog.label import Label
from catalog.models import Access, DeliveryClass, OutputRow, QueryRow, User
from secadmin.control.settlement import Settlement
from tests.unit.secadmin.control.place import IN1, IN2, Place


def backfill(place: Place, access: Access) -> str:
    """Give the subscription a topic for older results; its name."""
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        topic = settlement.backfill(change.session.get_one(Access, access.id)).topic
        change.audit("backfill", "test")
    assert settlement.topics == {topic}
    assert settlement.opened_classes_of == {access.object_id}
    return topic


def test_it_stands_beside_the_topic_of_the_subscription(place: Place) -> None:
    access = place.access()
    place.settle()
    live = str(place.topic(access))
    older = backfill(place, access)
    assert place.topics(access).keys() == {live, older}
    row = place.topics(access)[older]
    assert (row.leaving, row.fed_at) == (False, place.catalog.clock())
    found, shared = place.classes(older, live)
    assert (found.backfills, shared.backfills) == (True, False)
    assert (found.clearance, found.beyond) == (Label.of(IN1, IN2).to_wire(), None)
    # What is settled stays as it is.
    assert place.settle() == set()
    assert place.topics(access).keys() == {live, older}


def _query_waits(place: Place, access: Access) -> None:
    """Policies have changed what the query may read, and it is not merged with them yet."""
    with place.catalog.read() as session:
        query = session.get_one(OutputRow, access.object_id).query_id
    place.world.edit(QueryRow, query, views_changed_at=place.catalog.clock())


SHUT: dict[str, Callable[[Place, Access], object]] = {
    "the user is locked": lambda place, access: place.world.edit(User, access.user_id, locked=True),
    "the query waits": _query_waits,
    "the right is gone": lambda place, _: place.revoke("SUBSCRIBE", "output out1"),
}


@pytest.mark.parametrize("shut", SHUT.values(), ids=SHUT.keys())
def test_who_gets_no_results_gets_no_older_ones(
    place: Place, shut: Callable[[Place, Access], object]
) -> None:
    """Also if what the subscription has is not settled yet."""
    access = place.access()
    place.settle()
    backfill(place, access)
    shut(place, access)
    with pytest.raises(Denied, match="shows nothing of out1 now"):
        backfill(place, access)


def test_nobody_else_gets_it(place: Place) -> None:
    """Also where its class is the only one that is open."""
    access = place.access()
    place.settle()
    live, older = str(place.topic(access)), backfill(place, access)
    place.world.edit(DeliveryClass, place.classes(live)[0].id, closed_at=place.catalog.clock())
    place.world.member("joe", "R")
    other = place.access("joe")
    place.settle(Access.id == other.id)
    assert place.topic(other) not in (None, live, older)


def test_it_stays_where_others_leave(place: Place) -> None:
    access = place.access()
    place.settle()
    older = backfill(place, access)
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.cut_leaving([change.session.get_one(Access, access.id)])
        change.audit("cut", "test")
    assert settlement.topics == set() and older in place.topics(access)


def test_rights_that_shrink_take_it_and_close_its_class_alone(place: Place) -> None:
    access = place.access()
    place.settle()
    live, older = str(place.topic(access)), backfill(place, access)
    place.revoke("READ TUPLE", "stream in2")
    told = place.settle()
    (less,) = place.topics(access)
    assert told == {live, older, less}, "nothing takes the place of older results"
    assert place.withdrawals() == {(access.principal, live), (access.principal, older)}
    shared, closed, smaller = place.classes(live, older, less)
    assert closed.closed_at == place.catalog.clock()
    assert shared.closed_at is None, "others may have it"
    assert (smaller.clearance, smaller.closed_at) == (Label.of(IN1).to_wire(), None)


def test_rights_that_grow_leave_it(place: Place) -> None:
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    live, older = str(place.topic(access)), backfill(place, access)
    place.world.grant("R", "READ TUPLE", "stream in2")
    (more,) = place.settle()
    assert place.topics(access).keys() == {live, older, more}
    # What was added is taken again: the backfill holds nothing of it.
    place.revoke("READ TUPLE", "stream in2")
    assert place.settle() == {more}
    assert place.topics(access).keys() == {live, older}
    assert place.classes(older)[0].closed_at is None


def test_one_whose_class_is_closed_is_cut(place: Place) -> None:
    access = place.access()
    place.settle()
    live, older = str(place.topic(access)), backfill(place, access)
    before = place.catalog.clock() - timedelta(hours=1)
    place.world.edit(DeliveryClass, place.classes(older)[0].id, closed_at=before)
    assert place.settle() == {older}
    assert place.topics(access).keys() == {live}
    assert place.classes(older)[0].closed_at == before


@pytest.mark.parametrize("unreadable", ["clearance", "ways"])
def test_one_whose_class_cannot_be_read_is_cut(place: Place, unreadable: str) -> None:
    access = place.access()
    place.settle()
    live, older = str(place.topic(access)), backfill(place, access)
    garbage: object = ["garbage"] if unreadable == "ways" else "garbage"
    place.world.edit(DeliveryClass, place.classes(older)[0].id, **{unreadable: garbage})
    assert place.settle() == {older}
    assert place.topics(access).keys() == {live}


def test_it_goes_with_its_subscription(place: Place) -> None:
    access = place.access()
    place.settle()
    live, older = str(place.topic(access)), backfill(place, access)
    place.revoke("SUBSCRIBE", "output out1")
    assert place.settle() == {live, older}
    shared, closed = place.classes(live, older)
    assert (shared.closed_at, closed.closed_at) == (None, place.catalog.clock())
    place.world.grant("R", "SUBSCRIBE", "output out1")
    assert place.settle() == {live, older}, "what was taken is told until Kafka has it"
    assert place.topics(access).keys() == {live}
