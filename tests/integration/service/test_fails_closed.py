"""Every route, from the app's own table, tried by nobody, by a user without rights, and by all.

A new route that forgets its check fails here without anybody adding it to a list.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel
from sqlalchemy import select

from catalog.models import AuditEntry
from catalog.permission import APPLIES, ObjectKind, Permission
from secadmin.control.platform import Platform
from secadmin.service.app import create_app
from secadmin.service.requests import StreamBody
from secadmin.service.routes import ROUTERS
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, add_stream

OPEN_TO_ALL = {("POST", "/login"), ("GET", "/health")}
# One's own session, and the description of the API.
OWN_AFFAIRS = {
    ("POST", "/logout"),
    ("GET", "/whoami"),
    ("POST", "/password"),
    ("DELETE", "/whoami/roles/{role}"),
    ("GET", "/accesses"),
    ("GET", "/openapi.json"),
}
ROUTES = [
    (method, route)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods or ())
]


def name_of(item: tuple[str, APIRoute]) -> str:
    """A route as its test is called."""
    return f"{item[0]} {item[1].path}"


@embedded_only
def test_the_routers_are_all_there_is(platform: Platform) -> None:
    served = {
        (method, path)
        for path, operations in create_app(platform).openapi()["paths"].items()
        for method in map(str.upper, operations)
    }
    assert served == {(method, route.path) for method, route in ROUTES}


@pytest.fixture(scope="module")
def hidden(admin: Api) -> dict[str, str]:
    """Objects of every kind that only the administrator may view."""
    add_stream(admin, "hiddenstream", "hiddenschema")
    text = "SELECT * FROM hiddenstream"
    admin.post("/queries", name="hiddenquery", language="sql", text=text, output="hiddenoutput")
    admin.post("/roles", name="HIDDENROLE")
    admin.post("/users", name="hiddenuser")
    return {
        "schemas": "hiddenschema",
        "streams": "hiddenstream",
        "queries": "hiddenquery",
        "outputs": "hiddenoutput",
        "roles": "HIDDENROLE",
        "users": "hiddenuser",
        "accesses": "output-0123456789abcdef01234567",
    }


def path_of(route: APIRoute, hidden: dict[str, str]) -> str:
    """The route's path with names of hidden objects in it."""
    path = route.path
    collection = path.split("/")[1]
    for parameter in ("{name}", "{user}", "{principal}"):
        path = path.replace(parameter, hidden.get(collection, "x"))
    return path.replace("{role}", "HIDDENROLE").replace("{junior}", "HIDDENROLE")


def body_of(route: APIRoute, fresh: Callable[[str], str]) -> dict[str, Any] | None:
    """A body that is well formed, so that nothing but the missing right can refuse it."""
    model = typing.get_type_hints(route.endpoint).get("body")
    if model is None:
        return None
    values = {
        "name": "hiddenstream" if "permissions" in model.model_fields else fresh("n"),
        "user": "hiddenuser",
        "role": "HIDDENROLE",
        "permissions": ["READ TUPLE"],
        "kind": "stream",
        "schema": "hiddenschema",
        "attributes": [{"name": "a", "type": "string"}],
        "language": "sql",
        "text": "SELECT * FROM hiddenstream",
        "weak": True,
        "password": "a password of theirs",
        "old": "one password of theirs",
        "new": "other password of theirs",
    }
    return dict(_required(model, values))


def _required(model: type[BaseModel], values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        if field.is_required():
            yield (field.alias or name, values[field.alias or name])


def test_a_body_is_made_of_what_is_required() -> None:
    assert dict(_required(StreamBody, {"name": "n", "schema": "s"})) == {"name": "n", "schema": "s"}


QUERY = {"permission": "READ TUPLE", "kind": "stream", "name": "hiddenstream"}


@embedded_only
@pytest.mark.parametrize("item", ROUTES, ids=name_of)
def test_without_a_session_there_is_nothing(
    item: tuple[str, APIRoute],
    anonymous: Api,
    hidden: dict[str, str],
    fresh: Callable[[str], str],
) -> None:
    method, route = item
    if (method, route.path) in OPEN_TO_ALL:
        return
    body = body_of(route, fresh)
    for token in (None, "x", "0" * 43):
        caller = Api(anonymous.client, token)
        response = caller.call(method, path_of(route, hidden), json=body, params=QUERY)
        assert response.status_code == 401, response.text


@embedded_only
@pytest.mark.parametrize("item", ROUTES, ids=name_of)
def test_without_a_right_nothing_happens(
    item: tuple[str, APIRoute],
    new_user: NewUser,
    platform: Platform,
    hidden: dict[str, str],
    fresh: Callable[[str], str],
) -> None:
    method, route = item
    if (method, route.path) in OPEN_TO_ALL | OWN_AFFAIRS:
        return
    nobody = new_user()
    before = _changes(platform, nobody.user)
    body = body_of(route, fresh)
    response = nobody.call(method, path_of(route, hidden), json=body, params=QUERY)
    assert response.status_code in (403, 404), response.text
    assert "hidden" not in response.text.replace(path_of(route, hidden), "") or (
        response.status_code == 404
    )
    assert _changes(platform, nobody.user) == before


def _changes(platform: Platform, user: str) -> int:
    with platform.catalog.read() as session:
        made = select(AuditEntry).where(AuditEntry.actor == user, AuditEntry.outcome == "changed")
        return len(list(session.scalars(made)))


@embedded_only
@pytest.mark.parametrize("permission", Permission)
def test_no_permission_opens_what_another_one_guards(
    permission: Permission,
    admin: Api,
    new_user: NewUser,
    hidden: dict[str, str],
    fresh: Callable[[str], str],
) -> None:
    """One permission alone, on SYSTEM or on every hidden object, gives no data and no rights."""
    role = fresh("R")
    user = new_user(role)
    places = [
        (ObjectKind.SYSTEM, "system"),
        (ObjectKind.SCHEMA, hidden["schemas"]),
        (ObjectKind.STREAM, hidden["streams"]),
        (ObjectKind.QUERY, hidden["queries"]),
        (ObjectKind.OUTPUT, hidden["outputs"]),
    ]
    for kind, name in places:
        if permission in APPLIES[kind]:
            body = {"role": role, "permissions": [permission], "kind": kind, "name": name}
            admin.post("/grants", **body)
    for path in ("outputs/hiddenoutput/subscriptions", "streams/hiddenstream/senders"):
        response = user.call("POST", f"/{path}", json={})
        assert response.status_code in (403, 404), f"{permission}: {path}: {response.text}"
    if permission is not Permission.CHANGE_SYSTEM:
        assert user.call("GET", "/audit").status_code == 403
        assert user.call("POST", "/users", json={"name": fresh("u")}).status_code == 403
    if permission is not Permission.CHANGE_PERM:
        body = {"role": role, "permissions": ["READ TUPLE"], "kind": "stream"}
        grant = user.call("POST", "/grants", json=body | {"name": "hiddenstream"})
        assert grant.status_code in (403, 404)
