"""Which topic senders write, and who reads a quarantine."""

from __future__ import annotations

import pytest

from catalog.models import CategoryRow
from catalog.sender_state import SenderState
from secadmin.control.settlement import is_access_principal
from secadmin.kafka.principals import new_principal_name
from tests.unit.secadmin.control.place import Place, add_sender


def test_senders_and_quarantines_have_the_topics_of_their_stream(place: Place) -> None:
    send = place.access(what="stream in1", kind="send")
    quarantine = place.access("joe", "stream in2", kind="quarantine")
    place.world.member("joe", "R")
    assert place.settle() == {"in.in1.bob", "quarantine.in2"}
    for access, topic in ((send, "in.in1.bob"), (quarantine, "quarantine.in2")):
        ((name, row),) = place.topics(access).items()
        assert (name, row.class_id) == (topic, None)
    assert place.settle() == set(), "they stay as they are"


def test_a_sender_reaches_its_own_topic_in_that_stream_alone(place: Place) -> None:
    place.world.grant("R", "SEND", "stream in2")
    for stream in ("in1", "in2"):
        for state in (SenderState.DRAINING, SenderState.GONE):
            add_sender(place.world, stream, "bob", state)
    first = place.access(what="stream in1", kind="send", principal="first")
    second = place.access(what="stream in2", kind="send")
    place.settle()
    assert (place.topic(first), place.topic(second)) == ("in.in1.bob", None)
    add_sender(place.world, "news", "bob")
    add_sender(place.world, "in2", "bob")
    place.settle()
    assert place.topic(second) == "in.in2.bob"


@pytest.mark.parametrize(("user", "other"), [("bob", "joe"), ("joe", "bob")])
def test_the_topic_of_another_sender_is_not_reached(place: Place, user: str, other: str) -> None:
    place.world.member("joe", "R")
    place.world.grant("R", "SEND", "stream in2")
    add_sender(place.world, "in2", other)
    add_sender(place.world, "news", user)
    access = place.access(user, "stream in2", kind="send")
    place.settle()
    assert place.topic(access) is None


def test_all_users_of_a_shared_stream_write_its_one_topic(place: Place) -> None:
    place.world.member("joe", "R")
    place.world.grant("R", "SEND", "stream in2")
    add_sender(place.world, "in2", None)
    accesses = [place.access(user, "stream in2", kind="send") for user in ("bob", "joe")]
    place.settle()
    assert [place.topic(access) for access in accesses] == ["in.in2.shared"] * 2


def test_a_quarantine_needs_all_that_the_stream_can_carry(place: Place) -> None:
    access = place.access(what="stream in1", kind="quarantine")
    place.world.add(
        CategoryRow(bit=7, kind="source", stream_id=place.world.get_object("stream in1").id)
    )
    place.settle()
    assert place.topic(access) == "quarantine.in1"
    place.revoke("READ TUPLE", "stream in1")
    place.settle()
    assert place.topic(access) is None


def test_principals_of_accesses_are_known_by_their_names() -> None:
    for kind in ("output", "quarantine", "send"):
        assert is_access_principal(new_principal_name(kind))
    for name in ("secadmin", "output-1", new_principal_name("other"), new_principal_name("")):
        assert not is_access_principal(name)
