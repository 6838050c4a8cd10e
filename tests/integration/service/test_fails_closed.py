"""Every route, from the app's own table, tried by nobody, by a user without rights, and by all.

A new route that forgets its check fails here without anybody adding it to a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from catalog.permission import APPLIES, Permission
from secadmin.control.platform import Platform
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser
from tests.integration.service.operations import (
    NEED_A_RIGHT,
    OPEN_TO_ALL,
    OPERATIONS,
    Operation,
)
from tests.integration.service.world import World, changes, make_world

pytestmark = embedded_only


@pytest.fixture(scope="module")
def world(admin: Api) -> World:
    """Objects of every kind that only the administrator may view."""
    return make_world(admin)


def routes_of(routes: Iterable[Any]) -> Iterator[APIRoute]:
    """All routes of an app or a router, those of the routers that it includes among them."""
    for route in routes:
        router = getattr(route, "original_router", None)
        if router is not None:
            yield from routes_of(router.routes)
        else:
            assert isinstance(route, APIRoute), f"a kind of route that no test knows: {route}"
            yield route


def test_the_operations_are_all_there_is(platform: Platform) -> None:
    served = {
        f"{method} {route.path}"
        for route in routes_of(create_app(platform).routes)
        for method in route.methods or ()
    }
    # Its description is for those who are logged in, and describes all but itself.
    assert served == {*map(str, OPERATIONS), "GET /openapi.json"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_without_a_session_there_is_nothing(
    operation: Operation, anonymous: Api, world: World
) -> None:
    if str(operation) in OPEN_TO_ALL:
        return
    for token in (None, "x", "0" * 43):
        response = operation.call(world).send(Api(anonymous.client, token))
        assert response.status_code == 401, response.text


def test_the_description_is_for_those_who_are_logged_in(
    anonymous: Api, admin: Api, new_user: NewUser
) -> None:
    assert anonymous.call("GET", "/openapi.json").status_code == 401
    assert new_user().get("/openapi.json") == admin.get("/openapi.json")


@pytest.mark.parametrize("operation", NEED_A_RIGHT, ids=str)
def test_without_a_right_nothing_happens(
    operation: Operation, new_user: NewUser, platform: Platform, world: World
) -> None:
    nobody = new_user()
    before = changes(platform, nobody.user)
    call = operation.call(world)
    response = call.send(nobody)
    assert response.status_code in (403, 404), response.text
    if response.status_code == 403:
        given = {
            *call.path_values.values(),
            *map(str, call.params.values()),
            *map(str, (call.body or {}).values()),
        }
        told = [
            name for name in world.names.values() if name in response.text and name not in given
        ]
        assert set(told) <= {"system"}, response.text
    assert changes(platform, nobody.user) == before


@pytest.mark.parametrize("permission", Permission)
def test_no_permission_opens_what_another_one_guards(
    permission: Permission,
    admin: Api,
    new_user: NewUser,
    world: World,
    fresh: Callable[[str], str],
) -> None:
    """One permission alone, on SYSTEM or on every hidden object, gives no data and no rights."""
    role = fresh("R")
    user = new_user(role)
    for kind, name in world.objects():
        if permission in APPLIES[kind]:
            body = {"role": role, "permissions": [permission], "kind": kind, "name": name}
            admin.post("/grants", **body)
    for path in (
        f"outputs/{world.names['output']}/subscriptions",
        f"streams/{world.names['stream']}/senders",
    ):
        response = user.call("POST", f"/{path}", json={})
        assert response.status_code in (403, 404), f"{permission}: {path}: {response.text}"
    if permission is not Permission.CHANGE_SYSTEM:
        assert user.call("GET", "/audit").status_code == 403
        assert user.call("POST", "/users", json={"name": fresh("u")}).status_code == 403
    if permission is not Permission.CHANGE_PERM:
        body = {"role": role, "permissions": ["READ TUPLE"], "kind": "stream"}
        grant = user.call("POST", "/grants", json=body | {"name": world.names["stream"]})
        assert grant.status_code in (403, 404)
