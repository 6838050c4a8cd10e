"""Fuzzing by the OpenAPI document: what is answered is what the document says (schemathesis).

FUZZING_SEED (1) and FUZZING_EXAMPLES (3, and 12 in the long lane, for each operation, kind of input
and user) decide what is sent. The sample lane sends it to a fourth of the operations
(FUZZING_STEP).
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sqlalchemy import update

from catalog.models import AccessTopic
from secadmin.control.platform import Platform
from secadmin.service.app import create_app
from tests.bad_inputs import internals_in
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import PASSWORD, Api, NewUser, log_in, sqlite_only
from tests.integration.service.operations import (
    NEED_A_RIGHT,
    OPEN_TO_ALL,
    OPERATIONS,
    OWN_AFFAIRS,
    Call,
    Operation,
)
from tests.integration.service.variants import variants
from tests.integration.service.world import World, all_powerful, changes, make_world
from tests.lanes import number_of, sampled

# The form of an answer depends on neither the database nor the broker's home.
pytestmark = [embedded_only, sqlite_only]
SEED = int(os.environ.get("FUZZING_SEED", "1"))
EXAMPLES = number_of("FUZZING_EXAMPLES", sample=3, long=12)
STEP = number_of("FUZZING_STEP", sample=4, long=1)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@pytest.fixture(scope="module")
def described(platform: Platform, admin: Api) -> Any:
    """The document as it is served, and the app behind it."""
    app = create_app(platform)
    headers = {"Authorization": f"Bearer {admin.token}"}
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers=headers)


@pytest.fixture(scope="module")
def world(admin: Api) -> World:
    return make_world(admin)


@pytest.fixture(scope="module")
def powerful(world: World, new_user: NewUser) -> Api:
    """Who may do everything in the world."""
    return all_powerful(world, new_user)[0]


def fuzz(operation: APIOperation[Any, Any, Any, Any], user: Api, anonymous: Api) -> list[int]:
    """Send generated requests as the user, check each answer; the statuses that came."""
    statuses: list[int] = []
    print(f"FUZZING_SEED={SEED} FUZZING_EXAMPLES={EXAMPLES}")

    def send(case: Case[Any]) -> None:
        response = case.call(headers={"Authorization": f"Bearer {user.token}"})
        case.validate_response(response, checks=CHECKS)
        if response.status_code >= 400:
            assert response.json()["status"] == response.status_code
            assert internals_in(response.text, repr(case.body) + repr(case.query)) == []
        statuses.append(response.status_code)
        if response.status_code in (204, 401) and not alive(user):
            # It has logged itself out.
            user.token = log_in(anonymous, user.user, PASSWORD).token

    # Where nothing is asked for, nothing can be given wrongly.
    modes = MODES[:1] if str(operation.label) == "GET /health" else MODES
    for mode in modes:
        strategy = operation.as_strategy(generation_mode=mode)
        bounded = settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed(SEED)(bounded(given(strategy)(send)))()
    return statuses


def alive(user: Api) -> bool:
    """Whether the user's session is open."""
    return user.call("GET", "/whoami").status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS[SEED % STEP :: STEP], ids=str)
def test_as_somebody_who_may_do_everything(
    operation: Operation,
    described: Any,
    world: World,
    admin: Api,
    anonymous: Api,
    powerful: Api,
) -> None:
    assert fuzz(described[operation.path][operation.method], powerful, anonymous)
    assert admin.get("/health")["status"] in {"ok", "degraded"}


@pytest.mark.parametrize("operation", NEED_A_RIGHT[SEED % STEP :: STEP], ids=str)
def test_as_nobody(
    operation: Operation, described: Any, platform: Platform, anonymous: Api, new_user: NewUser
) -> None:
    nobody = new_user()
    before = changes(platform, nobody.user)
    statuses = fuzz(described[operation.path][operation.method], nobody, anonymous)
    assert all(400 <= status < 500 for status in statuses)
    assert changes(platform, nobody.user) == before


def own_affairs(platform: Platform, world: World, user: Api, role: str) -> World:
    """The world for requests about the caller's own user, role and access, which is fed."""
    access = user.post(f"/outputs/{world.names['output']}/subscriptions")
    with platform.catalog.bookkeeping() as session:
        unfed = update(AccessTopic).where(AccessTopic.fed_at.is_(None))
        session.execute(unfed.values(fed_at=platform.clock()))
    own = {"user": user.user, "role": role, "principal": access["principal"]}
    return replace(world, names=world.names | own)


def as_case(described: Any, call: Call) -> Case[Any]:
    """The request as one of the document's."""
    case: Case[Any] = described[call.path][call.method].Case(
        path_parameters=call.path_values,
        query=call.params,
        body=NOT_SET if call.body is None else call.body,
        media_type=None if call.body is None else "application/json",
    )
    return case


DELETIONS = [operation for operation in OPERATIONS if operation.method == "DELETE"]


# The sample lane has every second operation: test_permissions.py has all. Each deletion needs
# a world of its own, which takes a second and a half.
@pytest.mark.parametrize(
    "operation",
    sampled([each for each in OPERATIONS if each not in DELETIONS], 2)
    + DELETIONS[SEED % STEP :: STEP],
    ids=str,
)
def test_what_succeeds_is_as_described(  # noqa: PLR0917  # one for each fixture
    operation: Operation,
    described: Any,
    world: World,
    powerful: Api,
    admin: Api,
    new_user: NewUser,
    platform: Platform,
) -> None:
    """Of what is generated all may be refused; here every operation succeeds."""
    there, user, role = world, powerful, ""
    passwords = {}
    if str(operation) in OPEN_TO_ALL | OWN_AFFAIRS:
        there = replace(world, names=dict(world.names))
        user, role = all_powerful(there, new_user)
        there = own_affairs(platform, there, user, role)
        passwords = {"password": PASSWORD, "old": PASSWORD}
    elif operation.method == "DELETE":
        # What is deleted here, other operations need.
        there = make_world(admin)
        user, _ = all_powerful(there, new_user)
    for variant in variants(operation):
        if operation.path.endswith("/backfills"):
            # A subscription has one at a time.
            there = own_affairs(platform, there, user, role)
        case = as_case(described, variant.call(operation, there, **passwords))
        response = case.call(headers={"Authorization": f"Bearer {user.token}"})
        assert 200 <= response.status_code < 300, f"{variant}: {response.text}"
        case.validate_response(response, checks=CHECKS)


def test_afterwards_the_audit_log_is_whole(admin: Api) -> None:
    assert admin.get("/audit/verify")["first_problem"] is None
