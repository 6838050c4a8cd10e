"""Independent senders: each user has one number for ever, and only those that count are counted."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import Conflict
from catalog.independent_senders import (
    count_user,
    independent_users,
    leave_out_user,
    numbers_of,
)
from catalog.models import IndependentSender, SenderRow, User
from catalog.relation import MAX_INDEPENDENT
from catalog.sender_state import SenderState
from catalog.wanted import generation
from tests.unit.catalog.world import World

USERS = ("al", "bob", "eve")


@pytest.fixture
def market(world: World) -> World:
    """Two streams; al has had two topics in the first, and each user has one in the second."""
    world.stream("in1", 3, 70)
    world.stream("in2", 4, 71)
    for user in USERS:
        world.user(user)
    for stream, user, state in (
        ("in1", "al", SenderState.GONE),
        ("in1", "al", SenderState.ACTIVE),
        *(("in1", user, SenderState.ACTIVE) for user in USERS[1:]),
        *(("in2", user, SenderState.ACTIVE) for user in USERS),
    ):
        add_sender(world, stream, user, state)
    return world


def add_sender(world: World, stream: str, user: str | None, state: SenderState) -> SenderRow:
    own = world.get_object(f"stream {stream}").id
    found = None if user is None else user_id(world, user)
    topic = f"in.{stream}.{len(rows(world))}"
    row: SenderRow = world.add(SenderRow(stream_id=own, user_id=found, topic=topic, state=state))
    return row


def rows(world: World) -> list[SenderRow]:
    with world.catalog.read() as session:
        return list(session.query(SenderRow).order_by(SenderRow.id))


def user_id(world: World, name: str) -> int:
    return world.get(User, name).id


def say(world: World, stream: str, user: str, counts: bool) -> None:
    own, change = world.get_object(f"stream {stream}").id, count_user if counts else leave_out_user
    with world.catalog.change("test") as done:
        change(done.session, own, user_id(world, user))
        done.audit("say", "test")


def numbers(world: World, stream: str) -> dict[str, int]:
    """The number of each sender's topic."""
    with world.catalog.read() as session:
        found = numbers_of(session, world.get_object(f"stream {stream}").id)
    return {row.topic: found[row.id] for row in rows(world) if row.id in found}


def test_nobody_counts_before_the_owner_says_so(market: World) -> None:
    assert numbers(market, "in1") == {}


def test_all_topics_of_a_user_have_its_one_number(market: World) -> None:
    say(market, "in1", "bob", True)
    say(market, "in1", "al", True)
    assert numbers(market, "in1") == {"in.in1.0": 1, "in.in1.1": 1, "in.in1.2": 0}
    assert numbers(market, "in2") == {}
    with market.catalog.read() as session:
        own = market.get_object("stream in1").id
        assert independent_users(session, own) == {user_id(market, u) for u in ("al", "bob")}


def test_a_shared_topic_never_counts(market: World) -> None:
    say(market, "in1", "bob", True)
    add_sender(market, "in1", None, SenderState.ACTIVE)
    assert numbers(market, "in1") == {"in.in1.2": 0}


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from(USERS), st.booleans()), max_size=12))
def test_a_number_never_changes_hands(market: World, steps: list[tuple[str, bool]]) -> None:
    with market.catalog.read() as session:
        known = {row.user_id: row.number for row in session.query(IndependentSender)}
    counting: dict[str, bool] = {}
    for user, counts in steps:
        before = count_of_changes(market)
        say(market, "in2", user, counts)
        counting[user] = counts
        with market.catalog.read() as session:
            now = {row.user_id: row.number for row in session.query(IndependentSender)}
        assert known.items() <= now.items()
        assert len(set(now.values())) == len(now)
        assert count_of_changes(market) > before or not counts
        known = now
    found = numbers(market, "in2")
    for user, counts in counting.items():
        assert (f"in.in2.{4 + USERS.index(user)}" in found) is counts


def count_of_changes(world: World) -> int:
    with world.catalog.read() as session:
        return generation(session)


def test_there_are_as_many_as_a_mask_has_bits_and_no_more(market: World) -> None:
    stream = market.get_object("stream in1").id
    for number in range(MAX_INDEPENDENT):
        market.user(f"u{number}")
        say(market, "in1", f"u{number}", True)
    say(market, "in1", "u7", False)
    with pytest.raises(Conflict, match="64 users of the stream are or were"):
        say(market, "in1", "al", True)
    say(market, "in1", "u7", True)
    with market.catalog.read() as session:
        held = [row.number for row in session.query(IndependentSender)]
        assert len(independent_users(session, stream)) == MAX_INDEPENDENT
    assert sorted(held) == list(range(MAX_INDEPENDENT))
