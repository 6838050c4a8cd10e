"""Clearances from grants (DESIGN, kinds of category)."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert

from catalog.authorizer import Authorizer
from catalog.clearance import Clearance
from catalog.label import MAX_CATEGORIES, Label
from catalog.models import CategoryRow, Grant, Object, User
from catalog.permission import Permission
from catalog.store import Catalog
from catalog.subject import Subject
from tests.unit.catalog.world import START, World


def clearance(world: World, *roles: str, within: Label | None = None) -> Clearance:
    login = world.session("al", *roles)
    return world.ask(login, lambda a, s: a.clearance_of(s, within))


def test_read_tuple_gives_both_categories_read_aggregate_one(world: World) -> None:
    world.user("al", "T", "A", "S")
    world.stream("in1", 3, 70)
    world.grant("T", "READ TUPLE", "stream in1")
    world.grant("A", "READ AGGREGATE", "stream in1")
    world.grant("S", "VIEW OBJECT", "stream in1")
    assert clearance(world, "T") == Clearance.of(3, 70)
    assert clearance(world, "A") == Clearance.of(70)
    assert clearance(world, "T", "A") == Clearance.of(3, 70)
    assert clearance(world, "S") == clearance(world) == Clearance()
    assert clearance(world, "T", within=Label.of(3, 9)) == Clearance.of(3)
    assert clearance(world, "T", within=Label.of(*range(4, 700))) == Clearance.of(70)
    assert clearance(world, "T", within=Label()) == Clearance()


def test_owning_gives_no_category(world: World) -> None:
    world.user("al")
    world.stream("in1", 0, 1, owner="al")
    assert clearance(world) == Clearance()


def test_unknown_kinds_and_removed_streams_are_given_to_nobody(world: World) -> None:
    world.user("al", "R")
    removed = world.stream("in1", 0, 1)
    kept = world.stream("in2", 2)
    world.add(CategoryRow(bit=3, kind="company", stream_id=kept.id))
    world.grant("R", "READ TUPLE", "stream in1")
    world.grant("R", "READ TUPLE", "stream in2")
    world.edit(Object, removed.id, removed_at=START)
    assert clearance(world, "R") == Clearance.of(2)


def test_nobody_holds_a_category_that_no_label_can_have(world: World) -> None:
    world.user("al", "R")
    high = MAX_CATEGORIES
    for number, bits in enumerate(((0, high), (high - 1, high + 1), (high + 2, 1))):
        world.stream(f"in{number}", *bits)
        world.grant("R", "READ TUPLE", f"stream in{number}")
    assert clearance(world, "R") == Clearance.of(0, 1, high - 1)
    assert clearance(world, "R", within=Label.of(1, high)) == Clearance.of(1)


def test_a_locked_user_has_no_clearance(world: World) -> None:
    world.user("al", "R")
    world.stream("in1", 0)
    world.grant("R", "READ TUPLE", "stream in1")
    login = world.session("al", "R")
    world.edit(User, world.get(User, "al").id, locked=True)
    assert world.ask(login, lambda a, s: a.clearance_of(s)) == Clearance()


def test_more_than_a_thousand_sources(world: World, catalog: Catalog) -> None:
    world.user("al", "R")
    role = world.role("R").id
    with catalog.change("test") as change:
        objects: list[dict[str, Any]] = [
            {
                "id": 1_000 + i,
                "kind": "stream",
                "namespace": "relation",
                "name": f"s{i}",
                "created_at": START,
            }
            for i in range(1_200)
        ]
        change.session.execute(insert(Object), objects)
        categories = [{"bit": i, "kind": "source", "stream_id": 1_000 + i} for i in range(1_200)]
        change.session.execute(insert(CategoryRow), categories)
        grants = [
            {"role_id": role, "permission": "READ TUPLE", "object_id": 1_000 + i}
            for i in range(0, 1_200, 2)
        ]
        change.session.execute(insert(Grant), grants)
        change.audit("test", "many")
    even = Clearance.of(*range(0, 1_200, 2))
    assert clearance(world, "R") == even
    assert clearance(world, "R", within=Label.of(*range(1_100, 1_200))) == Clearance.of(
        *range(1_100, 1_200, 2)
    )
    assert even.covers(Label.of(0, 64, 1_198))
    assert not even.covers(Label.of(0, 64, 1_199))


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["R1", "R2", "R3"]),
        st.sampled_from(["READ TUPLE", "READ AGGREGATE", "VIEW OBJECT"]),
        st.integers(0, 3),
    ),
    max_size=10,
    unique=True,
)


@given(rows=ROWS, active=st.sets(st.sampled_from(["R1", "R2", "R3"])))
@settings(max_examples=20, deadline=None, suppress_health_check=[*HealthCheck])
def test_against_the_rule_in_words(
    world: World, rows: list[tuple[str, str, int]], active: set[str]
) -> None:
    if world.find(User, "al") is None:
        world.user("al", "R1", "R2", "R3")
        for number in range(4):
            world.stream(f"in{number}", 40 * number, 40 * number + 1)
    with world.catalog.change("test") as change:
        change.session.execute(delete(Grant))
        for role, permission, number in rows:
            target = world.get_object(f"stream in{number}").id
            held = Grant(role_id=world.get_role(role), permission=permission, object_id=target)
            change.session.add(held)
        change.audit("test", "grants")
    expected: set[int] = set()
    for role, permission, number in rows:
        if role in active and permission == "READ TUPLE":
            expected |= {40 * number, 40 * number + 1}
        if role in active and permission == "READ AGGREGATE":
            expected |= {40 * number + 1}
    assert clearance(world, *active) == Clearance.of(*expected)
    login = world.session("al", *active)
    for number in range(4):
        stream = world.get_object(f"stream in{number}")
        for permission, bit in ((Permission.READ_TUPLE, 0), (Permission.READ_AGGREGATE, 1)):
            decision = world.ask(login, lambda a, s: a.decide(s, permission, stream))  # noqa: B023
            assert decision.allowed == (40 * number + bit in expected), (
                "the authorizer says so, too"
            )


def test_every_other_permission_gives_no_category(world: World) -> None:
    world.user("al", "R")
    world.stream("in1", 0, 1)
    for permission in Permission:
        if permission not in (Permission.READ_TUPLE, Permission.READ_AGGREGATE):
            world.grant("R", permission, "stream in1")
    assert clearance(world, "R") == Clearance()


def test_read_aggregate_gives_no_kind_but_aggregated(world: World) -> None:
    world.user("al", "R")
    stream = world.stream("in1", 0, 1)
    for bit, kind in enumerate(("", "aggregate", "Aggregated", "aggregated ", "z"), start=2):
        world.add(CategoryRow(bit=bit, kind=kind, stream_id=stream.id))
    world.grant("R", "READ AGGREGATE", "stream in1")
    assert clearance(world, "R") == Clearance.of(1)


def test_a_role_gives_its_own_category_alone(world: World) -> None:
    """Nobody gets a category of another kind by a role, whatever the kind is called."""
    world.user("al", "R", "S", "T")
    kinds = (("R", "role"), ("S", "person"), ("T", "roles"), ("U", "role"))
    for bit, (role, kind) in enumerate(kinds, start=5):
        world.add(CategoryRow(bit=bit, kind=kind, role_id=world.role(role).id))
    for within in (None, Label.of(5, 6, 7, 8)):
        assert clearance(world, "R", "S", "T", within=within) == Clearance.of(5)


def test_a_level_is_held_beside_what_roles_give(world: World) -> None:
    world.stream("in1", 3)
    world.grant("R", "READ TUPLE", "stream in1")
    roles = frozenset({world.get_role("R")})
    subject = Subject(1, "al", {}, roles, roles, level=Label.of(9))
    with world.catalog.read() as session:
        assert Authorizer(session).clearance_of(subject) == Clearance.of(3, 9)
        assert Authorizer(session).clearance_of(subject, Label.of(9)) == Clearance.of(9)


def test_who_is_barred_has_no_clearance_whatever_its_roles(world: World) -> None:
    world.user("al", "R")
    world.stream("in1", 0)
    world.grant("R", "READ TUPLE", "stream in1")
    roles = frozenset({world.get_role("R")})
    barred = Subject(1, "al", {}, roles, roles, barred="the user is locked")
    with world.catalog.read() as session:
        assert Authorizer(session).clearance_of(barred) == Clearance()
