"""casbin's own policies and requests, where the model is RBAC without a bypass.

`read` is READ TUPLE and `write` SEND on a stream; a policy's subject is a role, and each user has a
role of its own name, senior to the roles that `g` gives it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.permission import Permission
from tests.requirements import missing
from tests.unit.catalog.world import World

FILE = Path(__file__).parents[4] / "shared" / "vectors" / "casbin-rbac" / "cases.json"
PERMISSIONS = {"read": Permission.READ_TUPLE, "write": Permission.SEND}
FITTING = {
    "model_test.go:TestBasicModel",
    "model_test.go:TestBasicModelNoPolicy",
    "model_test.go:TestRBACModel",
}
WITH_BYPASS = "model_test.go:TestBasicModelWithRoot"


@pytest.fixture(autouse=True)
def vectors() -> None:
    """Every test here needs them."""
    if not FILE.exists():
        missing(f"the shared test vectors at {FILE}")


def _cases() -> list[dict[str, Any]]:
    if not FILE.exists():
        # Stands in for them, so that the test is run and says what is missing.
        return [{"test": "missing"}]
    found: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]
    return [case for case in found if case["test"] in FITTING | {WITH_BYPASS}]


def _lines(policy: str) -> list[list[str]]:
    rows = [[field.strip() for field in line.split(",")] for line in policy.splitlines()]
    return [row for row in rows if row != [""]]


def _build(world: World, case: dict[str, Any]) -> None:
    for user in sorted({request["request"][0] for request in case["requests"]}):
        world.user(user, user)
    for stream in sorted({request["request"][1] for request in case["requests"]}):
        world.object(f"stream {stream}")
    for kind, *row in _lines(case["policy_csv"] or ""):
        if kind == "p":
            world.grant(row[0], PERMISSIONS[row[2]], f"stream {row[1]}")
        else:
            world.role(row[0], [row[1]])


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["test"])
def test_case(world: World, case: dict[str, Any]) -> None:
    _build(world, case)
    for asked in case["requests"]:
        user, stream, action = asked["request"]
        target = world.get_object(f"stream {stream}")
        decision = world.ask(
            world.session(user, user),
            lambda a, s: a.decide(s, PERMISSIONS[action], target),  # noqa: B023
        )
        # There is no bypass here: casbin's root is a user without grants.
        bypass = case["test"] == WITH_BYPASS and user == "root"
        assert decision.allowed == (asked["allow"] and not bypass), asked
