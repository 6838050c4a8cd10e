"""Who may SEND by any role is not shown the stream's declared aggregate."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from catalog.authorizer import Authorizer
from catalog.clearance import Clearance
from catalog.decision import Decision
from catalog.models import (
    CategoryRow,
    Grant,
    Membership,
    Object,
    Seniority,
    StreamRow,
    User,
)
from catalog.permission import APPLIES, ObjectKind, Permission
from catalog.senders import kept_from_aggregates, with_own_topics
from catalog.subject import Subject, subject_of_user, subjects_of_accesses
from tests.unit.catalog.world import START, World

SOURCE, AGGREGATED = 3, 70


@pytest.fixture
def market(world: World) -> World:
    """A stream with a declared aggregate; A reads it, T reads tuples, S sends, J is above S."""
    world.stream("in1", SOURCE, AGGREGATED)
    world.grant("A", "READ AGGREGATE", "stream in1")
    world.grant("T", "READ TUPLE", "stream in1")
    world.grant("S", "SEND", "stream in1")
    world.role("J", ["K"])
    world.role("K", ["S"])
    return world


def clearance(world: World, user: str, *active: str) -> Clearance:
    return world.ask(world.session(user, *active), lambda a, s: a.clearance_of(s))


@pytest.mark.parametrize("sender", ["S", "K", "J"])
def test_a_role_that_is_not_active_counts(market: World, sender: str) -> None:
    market.user("al", "A", "T", sender)
    assert clearance(market, "al", "A") == Clearance()
    assert clearance(market, "al", "A", sender) == Clearance()
    assert clearance(market, "al", "A", "T") == Clearance.of(SOURCE, AGGREGATED)
    assert clearance(market, "al", "T", sender) == Clearance.of(SOURCE, AGGREGATED)


def test_only_the_own_right_to_that_stream_counts(market: World) -> None:
    market.user("al", "A", "OTHER")
    market.user("bob", "A", "S")
    market.stream("in2", 4, 71)
    market.grant("A", "READ AGGREGATE", "stream in2")
    market.grant("OTHER", "SEND", "stream in2")
    assert clearance(market, "al", "A") == Clearance.of(AGGREGATED)
    assert clearance(market, "bob", "A") == Clearance.of(71)


def test_accesses_that_are_looked_at_together_are_each_users_own(market: World) -> None:
    market.user("al", "A")
    market.user("bob", "A", "J")
    market.object("output out1")
    rows = [market.access(user, "output out1", "A") for user in ("al", "bob")]
    with market.catalog.read() as session:
        accesses = [session.merge(row, load=True) for row in rows]
        al, bob = subjects_of_accesses(session, accesses, START)
    stream = market.get_object("stream in1").id
    assert al.role_ids == bob.role_ids
    assert (al.sends_to, bob.sends_to) == ({}, {stream: "S"})


def test_all_roles_of_a_user_at_once(market: World) -> None:
    market.user("al", "A", "S")
    with market.catalog.read() as session:
        subject = subject_of_user(session, session.get_one(User, market.get(User, "al").id))
    assert list(subject.sends_to.values()) == ["S"]


def test_of_several_roles_the_first_is_told(market: World) -> None:
    for role in ("Z", "B"):
        market.grant(role, "SEND", "stream in1")
    market.user("al", "Z", "B", "S")
    login = market.session("al")
    assert list(market.ask(login, lambda a, s: s.sends_to).values()) == ["B"]


def test_a_stream_without_a_declared_aggregate_keeps_nothing_from_its_senders(
    world: World,
) -> None:
    stream = world.stream("in1", SOURCE)
    for bit, kind in enumerate(("", "aggregate", "z"), start=SOURCE + 1):
        world.add(CategoryRow(bit=bit, kind=kind, stream_id=stream.id))
    world.grant("S", "SEND", "stream in1")
    world.user("al", "S")
    assert world.ask(world.session("al"), lambda a, s: s.sends_to) == {}


def test_what_lets_no_one_send_keeps_nothing(market: World) -> None:
    """The names of permissions have an order: some are before SEND, some behind it."""
    for permission in ("CHANGE PERM", "VIEW OBJECT"):
        market.grant("LOOKS", permission, "stream in1")
    market.user("al", "A", "LOOKS")
    assert clearance(market, "al", "A") == Clearance.of(AGGREGATED)


def ways(world: World, user: str, *active: str) -> tuple[Decision, tuple[Decision, ...]]:
    target = world.get_object("stream in1")
    permission = Permission.READ_AGGREGATE
    return world.ask(
        world.session(user, *active),
        lambda a, s: (a.decide(s, permission, target), a.explain(s, permission, target)),
    )


def test_explain_says_which_role_sends(market: World) -> None:
    market.user("al", "A", "J")
    decision, (_, way) = ways(market, "al", "A")
    assert decision == way
    assert (way.allowed, way.via_role) == (False, None)
    assert way.reason == (
        "role A holds READ AGGREGATE on stream in1, but it does not count: "
        "role S lets al SEND there, and a sender could compute single tuples of others"
    )


def test_reading_tuples_stands_before_what_does_not_count(market: World) -> None:
    market.user("al", "A", "B", "S", "T")
    for permission in ("READ AGGREGATE", "READ TUPLE"):
        market.grant("B", permission, "stream in1")
    for active in (("A", "T"), ("T", "A"), ("B",), ("A", "B")):
        decision, _ = ways(market, "al", *active)
        assert decision.allowed, active
        assert "READ TUPLE" in decision.reason
        assert decision.via_role in ("B", "T")


def test_nothing_else_is_kept_from_a_sender(market: World) -> None:
    market.user("al", "ALL", "S")
    others = APPLIES[ObjectKind.STREAM] - {Permission.READ_TUPLE}
    for permission in others:
        market.grant("ALL", permission, "stream in1")
    login, target = market.session("al", "ALL"), market.get_object("stream in1")
    allowed = {
        permission
        for permission in Permission
        if market.ask(login, lambda a, s: a.decide(s, permission, target)).allowed  # noqa: B023
    }
    assert allowed == others - {Permission.READ_AGGREGATE}


def kept(world: World, role: str, members_of: str, user: str | None = None) -> list[str]:
    user_id = world.get(User, user).id if user else None
    with world.catalog.read() as session:
        roles = world.get_role(role), world.get_role(members_of)
        return [stream.name for stream in kept_from_aggregates(session, *roles, user_id)]


def test_what_a_warning_is_about(market: World) -> None:
    market.user("al", "A", "J")
    market.user("bob", "A", "T")
    market.role("U", ["A"])
    assert kept(market, "S", "S") == kept(market, "A", "A") == ["in1"]
    assert kept(market, "K", "J") == kept(market, "J", "J", "al") == ["in1"]
    assert kept(market, "T", "T") == kept(market, "T", "A") == [], "it holds neither right"
    assert kept(market, "A", "A", "bob") == kept(market, "U", "U") == [], "nobody holds both"
    market.edit(Object, market.get_object("stream in1").id, removed_at=START)
    assert kept(market, "S", "S") == []


def test_one_users_right_to_send_is_no_warning_about_another_one(market: World) -> None:
    """Whichever of the two users, and of the two roles, was made first."""
    market.grant("LATER", "READ AGGREGATE", "stream in1")
    market.grant("C", "CHANGE PERM", "stream in1")
    for pair, users in (("P", ("al", "bob")), ("Q", ("cy", "dan"))):
        market.user(users[0], pair, "S" if pair == "P" else "A")
        market.user(users[1], pair, "A" if pair == "P" else "S")
    market.user("eve", "S", "C")
    for members in ("P", "Q", "C"):
        assert kept(market, "S", members) == [], members
    assert kept(market, "S", "S", "al") == kept(market, "A", "A", "bob") == []


def test_nobody_is_warned_of_where_nothing_is_declared(world: World) -> None:
    world.stream("in1", SOURCE)
    for permission in ("SEND", "READ AGGREGATE", "CHANGE PERM", "VIEW OBJECT"):
        world.grant("R", permission, "stream in1")
    world.user("al", "R")
    assert kept(world, "R", "R") == []


ROLES = ("R1", "R2", "R3", "R4")
USERS = ("al", "bob")
RIGHTS = ("READ TUPLE", "READ AGGREGATE", "SEND", "VIEW OBJECT")
GRANTS = st.sets(st.tuples(st.sampled_from(ROLES), st.sampled_from(RIGHTS), st.integers(0, 1)))
EDGES = st.sets(st.sampled_from(list(combinations(ROLES, 2))))
SOME = st.sets(st.sampled_from(ROLES))


@given(grants=GRANTS, edges=EDGES, member=SOME, active=SOME)
@settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
def test_whatever_is_granted_no_sender_has_the_aggregate_without_the_tuples(
    world: World,
    grants: set[tuple[str, str, int]],
    edges: set[tuple[str, str]],
    member: set[str],
    active: set[str],
) -> None:
    fill(world, grants, edges, {"al": member})
    held, counted = below(member, edges), below(member & active, edges)
    login = world.session("al", *active)
    seen, subject = world.ask(login, lambda a, s: (a.clearance_of(s), s))
    for number, (source, aggregated) in enumerate(((0, 1), (80, 81))):
        tuples = any((role, "READ TUPLE", number) in grants for role in counted)
        reads = any((role, "READ AGGREGATE", number) in grants for role in counted)
        sends = any((role, "SEND", number) in grants for role in held)
        wanted = tuples or (reads and not sends)
        assert bool(seen.bits >> source & 1) == tuples
        assert bool(seen.bits >> aggregated & 1) == wanted
        assert _holds(world, subject, f"stream in{number}") == wanted


def _holds(world: World, subject: Subject, stream: str) -> bool:
    """What the authorizer decides, and that `explain` says no other."""
    target, permission = world.get_object(stream), Permission.READ_AGGREGATE
    with world.catalog.read() as session:
        authorizer = Authorizer(session)
        allowed = authorizer.decide(subject, permission, target).allowed
        ways = authorizer.explain(subject, permission, target)
    assert any(way.allowed for way in ways) == allowed
    return allowed


@given(grants=GRANTS, edges=EDGES, members=st.fixed_dictionaries(dict.fromkeys(USERS, SOME)))
@settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])
def test_warnings_against_the_rule_in_words(
    world: World,
    grants: set[tuple[str, str, int]],
    edges: set[tuple[str, str]],
    members: dict[str, set[str]],
) -> None:
    fill(world, grants, edges, members)
    held = {user: below(roles, edges) for user, roles in members.items()}
    for role in ROLES:
        given = {
            number
            for owner, right, number in grants
            if owner in below({role}, edges) and right in ("SEND", "READ AGGREGATE")
        }
        both = {
            user: {
                f"in{number}"
                for number in given
                if any((own, "SEND", number) in grants for own in roles)
                and any((own, "READ AGGREGATE", number) in grants for own in roles)
            }
            for user, roles in held.items()
        }
        every = [both[user] for user, roles in held.items() if role in roles]
        assert kept(world, role, role) == sorted(set().union(*every))
        user = USERS[len(given) % 2]
        assert kept(world, role, role, user) == sorted(both[user])


def fill(
    world: World,
    grants: set[tuple[str, str, int]],
    edges: set[tuple[str, str]],
    members: dict[str, set[str]],
) -> None:
    """Make the world hold this alone, with the users and two streams with an aggregate."""
    if world.find(User, "al") is None:
        for name in USERS:
            world.user(name, *ROLES)
        world.stream("in0", 0, 1)
        world.stream("in1", 80, 81)
    with world.catalog.change("test") as change:
        for table in (Grant, Seniority, Membership):
            change.session.execute(delete(table))
        change.session.add_all(
            Membership(user_id=world.get(User, user).id, role_id=world.get_role(role))
            for user, roles in members.items()
            for role in roles
        )
        for senior, junior in edges:
            pair = {"senior_id": world.get_role(senior), "junior_id": world.get_role(junior)}
            change.session.add(Seniority(**pair))
        for role, permission, number in grants:
            target = world.get_object(f"stream in{number}").id
            row = Grant(role_id=world.get_role(role), permission=permission, object_id=target)
            change.session.add(row)
        change.audit("test", "grants")


def below(roles: set[str], edges: set[tuple[str, str]]) -> set[str]:
    """The roles and all that are below them; edges lead from lower numbers to higher ones."""
    found = set(roles)
    for senior, junior in sorted(edges):
        if senior in found:
            found.add(junior)
    return found


def own_topics(world: World) -> set[tuple[str, str]]:
    """(stream, user), by names, of those that are to have topics of their own."""
    with world.catalog.read() as session:
        streams = {obj.id: obj.name for obj in session.scalars(select(Object))}
        users = {user.id: user.name for user in session.scalars(select(User))}
        return {(streams[stream], users[user]) for stream, user in with_own_topics(session)}


def stored(world: World, name: str, *, shared: bool = False) -> None:
    """The stream's row, beside its object."""
    world.add(
        StreamRow(
            object_id=world.get_object(f"stream {name}").id,
            schema_id=world.get_object(f"stream {name}").id,
            relation={},
            record_format={},
            max_ahead_ms=0,
            max_bytes=1,
            partitions=1,
            shared=shared,
            ingest_group=1,
        )
    )


def test_who_may_send_by_any_role_has_a_topic_of_its_own(market: World) -> None:
    """J is above K, K above S, which sends: no role is active."""
    stored(market, "in1")
    for user, role in (("al", "S"), ("bob", "K"), ("cy", "J"), ("dan", "A"), ("eve", "T")):
        market.user(user, role)
    market.user("fay", "S", "J")
    market.user("gil")
    for role in ("LOOKS", "LATER"):
        market.grant(role, "VIEW OBJECT", "stream in1")
    # Each is above a role that sends nothing, one that is older than S and one that is newer.
    market.role("ABOVE", ["A"])
    market.role("OVER", ["LATER"])
    for user, role in (("hal", "LOOKS"), ("ida", "ABOVE"), ("jo", "OVER")):
        market.user(user, role)
    assert own_topics(market) == {("in1", user) for user in ("al", "bob", "cy", "fay")}


def test_each_stream_has_its_own_senders(market: World) -> None:
    """Also if a stream with shared senders is between two others."""
    market.stream("shared", 4)
    market.stream("in2", 5)
    stored(market, "in1")
    stored(market, "shared", shared=True)
    stored(market, "in2")
    for role, what in (("OTHER", "stream in2"), ("S", "stream shared"), ("OTHER", "stream shared")):
        market.grant(role, "SEND", what)
    market.user("al", "S")
    market.user("bob", "OTHER", "K")
    assert own_topics(market) == {("in1", "al"), ("in1", "bob"), ("in2", "bob")}
    market.edit(Object, market.get_object("stream in1").id, removed_at=START)
    assert own_topics(market) == {("in2", "bob")}
