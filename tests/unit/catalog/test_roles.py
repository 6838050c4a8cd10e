"""The role hierarchy: transitive, and never a cycle."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from catalog.errors import Conflict
from catalog.models import Role, Seniority
from catalog.roles import add_junior, juniors_of, remove_junior, seniors_of
from catalog.store import Catalog
from tests.unit.catalog.world import World

EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


def below(start: int, edges: set[tuple[int, int]]) -> set[int]:
    """All that is reached from `start`, by walking."""
    reached, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for senior, junior in edges:
            if senior == here and junior not in reached:
                reached.add(junior)
                waiting.append(junior)
    return reached


@given(edges=EDGES)
@settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])
def test_closure_and_refusals_against_a_walk(
    catalog: Catalog, edges: list[tuple[int, int]]
) -> None:
    with catalog.change("test") as change:
        session = change.session
        session.execute(delete(Seniority))
        session.execute(delete(Role))
        roles = [Role(name=f"r{number}") for number in range(7)]
        session.add_all(roles)
        session.flush()
        numbers = {role.id: number for number, role in enumerate(roles)}
        kept: set[tuple[int, int]] = set()
        for senior, junior in edges:
            cycle = senior in below(junior, kept)
            try:
                added = add_junior(session, roles[senior], roles[junior])
            except Conflict:
                assert cycle
            else:
                assert not cycle
                assert added == ((senior, junior) not in kept)
                kept.add((senior, junior))
        juniors = juniors_of(session, numbers)
        seniors = seniors_of(session, numbers)
        for role, number in numbers.items():
            assert {numbers[found] for found in juniors[role]} == below(number, kept)
            turned = {(junior, senior) for senior, junior in kept}
            assert {numbers[found] for found in seniors[role]} == below(number, turned)
        change.audit("test", "roles")


def test_a_role_is_not_its_own_junior(world: World, catalog: Catalog) -> None:
    role = world.role("A")
    with (
        pytest.raises(Conflict, match="'A' cannot be junior to 'A'"),
        catalog.change("test") as change,
    ):
        add_junior(change.session, role, role)


def test_a_cycle_that_got_in_ends_nowhere(world: World, catalog: Catalog) -> None:
    a, b = world.role("A"), world.role("B")
    world.add(Seniority(senior_id=a.id, junior_id=b.id))
    world.add(Seniority(senior_id=b.id, junior_id=a.id))
    with catalog.read() as session:
        assert juniors_of(session, [a.id]) == {a.id: frozenset({a.id, b.id})}


def test_absent_roles_and_no_roles(world: World, catalog: Catalog) -> None:
    a, b = world.role("A"), world.role("B")
    with catalog.read() as session:
        assert juniors_of(session, []) == {}
        assert juniors_of(session, [a.id, 999]) == {a.id: frozenset({a.id})}
    with catalog.change("test") as change:
        assert not remove_junior(change.session, a, b)
        assert add_junior(change.session, a, b)
        assert not add_junior(change.session, a, b)
        assert remove_junior(change.session, a, b)
        change.audit("test", "roles")
