"""Every route, from the app's own table, tried by nobody, by a user without rights, and by all.

A new route that forgets its check, or tells what is hidden from what is not there, fails here
without anybody adding it to a list.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from catalog.permission import APPLIES, ObjectKind, Permission
from secadmin.control.platform import Platform
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser
from tests.integration.service.operations import (
    NEED_A_RIGHT,
    OPEN_TO_ALL,
    OPERATIONS,
    OWN_AFFAIRS,
    Call,
    Operation,
)
from tests.integration.service.variants import Variant, variants
from tests.integration.service.world import World, changes, make_world

pytestmark = embedded_only
# Every other part of a request is taken for a name, or for something with names in it.
NAMELESS = {"kind", "after", "limit", "head", "old", "new"}
NAMING = tuple(
    o
    for o in OPERATIONS
    if str(o) not in OPEN_TO_ALL and {*o.in_path, *o.in_query, *(o.in_body or ())} - NAMELESS
)
# CHANGE SYSTEM shows all users, roles and executions, so of these nothing is hidden from who holds
# it; and who may add something is told that a name is taken (README, "What is not").
_SHOWN_WITH_THE_SYSTEM = ("/users", "/roles", "/executions")
NAMING_OBJECTS = tuple(
    o
    for o in NAMING
    if str(o) not in OWN_AFFAIRS | {"POST /schemas", "POST /conflict-classes"}
    and not o.path.startswith(_SHOWN_WITH_THE_SYSTEM)
)


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


@dataclass(frozen=True)
class Asker:
    """Somebody, and two worlds that differ in the names of what is hidden from them and of nothing.

    What a request would make gets its name from `made`, or from the same world where that is None.
    """

    api: Api
    hidden: World
    absent: World
    made: World | None = None

    def call(self, operation: Operation, variant: Variant, world: World) -> Call:
        """The operation's request about one of the worlds."""
        call, made = variant.call(operation, world), self.made or world
        if call.body is None:
            return call
        # Beside a kind, a name is that of an object.
        own = {"name": made.in_path(call.method, call.path, "name")} if _makes(call.body) else {}
        own |= {"output": made.names["output"]} if "output" in call.body else {}
        return replace(call, body=call.body | own)

    def assert_not_told(self, operation: Operation) -> None:
        """Whether it is hidden or absent, the operation gives the same answer, a refusal."""
        # In a query's text a hidden name is a mistake at its place, as one is that never was.
        refusals = (403, 404, 422) if "text" in (operation.in_body or ()) else (403, 404)
        compared = 0
        for variant in variants(operation):
            about_hidden = self.call(operation, variant, self.hidden)
            about_absent = self.call(operation, variant, self.absent)
            if about_hidden == about_absent:
                # About the system itself, which everybody may see.
                continue
            hidden, absent = about_hidden.send(self.api), about_absent.send(self.api)
            assert hidden.status_code in refusals, f"{variant}: {hidden.text}"
            assert told(hidden, self.hidden) == told(absent, self.absent), variant
            compared += 1
        assert compared, "nothing that is hidden was named"


def _makes(body: dict[str, Any]) -> bool:
    return "name" in body and "kind" not in body


def never(world: World, *whats: str) -> World:
    """The world with names for these that nothing ever had, as long as theirs."""
    tail = secrets.token_hex(4)
    others = {what: f"{world.names[what][: -len(tail)]}{tail}" for what in whats}
    return replace(world, names=world.names | others)


def told(response: httpx.Response, world: World) -> tuple[int, dict[str, str], str]:
    """All that the answer tells, but for the names, in whose place is what they name."""
    said = response.text
    for what, name in sorted(world.names.items(), key=lambda item: -len(item[1])):
        said = said.replace(name, f"<{what}>")
    return response.status_code, dict(response.headers), said


@pytest.fixture(scope="module")
def without_rights(world: World, admin: Api, new_user: NewUser) -> Asker:
    """All that there is is hidden: users, roles and other people's accesses too."""
    access = admin.post(f"/outputs/{world.names['output']}/subscriptions")
    hidden = replace(world, names=world.names | {"principal": access["principal"]})
    absent = never(hidden, *(what for what in hidden.names if what != "system"))
    return Asker(new_user(), hidden, replace(absent, execution=2**62))


@pytest.fixture(scope="module")
def with_the_system(
    world: World, admin: Api, new_user: NewUser, fresh: Callable[[str], str]
) -> Asker:
    """Every permission on SYSTEM, and none on any object: these are hidden."""
    role = fresh("R")
    user = new_user(role)
    system = ObjectKind.SYSTEM
    admin.post("/grants", role=role, permissions=sorted(APPLIES[system]), kind=system)
    objects = [what for what in world.names if what.split()[-1] in set(ObjectKind) - {system}]
    return Asker(user, world, never(world, *objects), made=never(world, *objects))


@pytest.mark.parametrize("operation", NAMING, ids=str)
def test_without_a_right_hidden_and_absent_are_the_same_answer(
    operation: Operation, without_rights: Asker
) -> None:
    without_rights.assert_not_told(operation)


@pytest.mark.parametrize("operation", NAMING_OBJECTS, ids=str)
def test_rights_on_the_system_do_not_tell_hidden_from_absent(
    operation: Operation, with_the_system: Asker, platform: Platform
) -> None:
    before = changes(platform, with_the_system.api.user)
    with_the_system.assert_not_told(operation)
    assert changes(platform, with_the_system.api.user) == before
