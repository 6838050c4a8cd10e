"""Fortress' own policies in the terms of ANSI INCITS 359, against what the standard says.

An operation on an object is READ TUPLE on a stream of both names. A child role inherits from its
parent, so it is the senior one. Which roles a session has active together is limited there by
dynamic separation of duty. Here the user chooses, so all choices are tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

import pytest
from defusedxml.ElementTree import parse  # type: ignore[import-untyped]

from catalog.permission import Permission
from tests.requirements import missing
from tests.unit.catalog.world import World

FOLDER = Path(__file__).parents[4] / "shared" / "vectors" / "fortress-ansi-rbac"
FILES = ("RbacAbacSample.xml", "RoleEngineeringSample.xml", "RbacAcceleratorTestUsers.xml")


@dataclass(frozen=True)
class Policy:
    """Who has which roles, which role inherits from which ones, and what roles are granted."""

    roles: Mapping[str, frozenset[str]]
    parents: Mapping[str, frozenset[str]]
    grants: Mapping[str, frozenset[str]]

    @property
    def operations(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(self.grants.values()))

    def allowed(self, active: frozenset[str]) -> frozenset[str]:
        """What a session with these roles may do, by the standard: inherited roles count."""
        held: set[str] = set()
        waiting = set(active)
        while waiting:
            role = waiting.pop()
            held.add(role)
            waiting |= set(self.parents.get(role, ())) - held
        return frozenset(chain.from_iterable(self.grants.get(role, ()) for role in held))


def policy_of(name: str) -> Policy:
    tree = parse(FOLDER / name)

    def pairs(tag: str, key: str, value: str) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        # What the file removes again at its end does not count as added.
        for block in tree.iter():
            if block.tag.startswith("add"):
                for each in block.iter(tag):
                    found.setdefault(each.get(key, ""), set()).add(each.get(value, ""))
        return {key: frozenset(values) for key, values in found.items()}

    grants: dict[str, set[str]] = {}
    for each in tree.iter("permgrant"):
        operation = f"{each.get('objName')}-{each.get('opName')}".replace(".", "-")
        grants.setdefault(each.get("roleNm", ""), set()).add(operation)
    return Policy(
        pairs("userrole", "userId", "name"),
        pairs("relationship", "child", "parent"),
        {role: frozenset(operations) for role, operations in grants.items()},
    )


def build(world: World, policy: Policy) -> None:
    for operation in sorted(policy.operations):
        world.object(f"stream {operation}")
    for child, parents in sorted(policy.parents.items()):
        world.role(child, sorted(parents))
    for role, operations in sorted(policy.grants.items()):
        for operation in sorted(operations):
            world.grant(role, Permission.READ_TUPLE, f"stream {operation}")
    for user, roles in sorted(policy.roles.items()):
        world.user(user, *sorted(roles))


@pytest.mark.parametrize("name", FILES)
def test_a_session_may_do_what_its_active_roles_inherit(world: World, name: str) -> None:
    if not FOLDER.is_dir():
        missing(f"the shared test vectors at {FOLDER}")
    policy = policy_of(name)
    build(world, policy)
    streams = {each: world.get_object(f"stream {each}") for each in policy.operations}
    tried = 0
    for user, roles in list(policy.roles.items())[:6]:
        choices = (combinations(sorted(roles), count) for count in range(len(roles) + 1))
        for active in list(chain.from_iterable(choices))[:16]:
            login = world.session(user, *active)
            may = world.ask(
                login,
                lambda a, s: {
                    each
                    for each, target in streams.items()
                    if a.decide(s, Permission.READ_TUPLE, target).allowed
                },
            )
            assert may == policy.allowed(frozenset(active)), (user, active)
            tried += bool(may)
    assert tried or not policy.operations
