"""Naughty strings in every place of every route: refused with a problem document, or taken whole.

Each place gets its share of the strings, so that each string is in several places. The order is
that of BAD_INPUTS_SEED (1). The sample lane has every third string (BAD_INPUT_STEP), and all
places.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from secadmin.control.platform import Platform
from tests.bad_inputs import internals_in, naughty_strings, xml_files, xml_names
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import (
    PASSWORD,
    Api,
    NewUser,
    decided_by_postgresql,
    log_in,
)
from tests.integration.service.operations import (
    NEED_A_RIGHT,
    OPERATIONS,
    Call,
    Operation,
    Place,
    places,
)
from tests.integration.service.world import World, all_powerful, changes, make_world
from tests.lanes import number_of

pytestmark = [embedded_only, decided_by_postgresql]

# In how many places each string is, at least.
USES = number_of("BAD_INPUT_USES", sample=1, long=2)
STRINGS = naughty_strings()[:: number_of("BAD_INPUT_STEP", sample=3, long=1)]
# Nobody tries every so many of them.
STEP = 4


@pytest.fixture(scope="module")
def world(admin: Api) -> World:
    return make_world(admin)


@pytest.fixture(scope="module")
def powerful(world: World, new_user: NewUser) -> tuple[Api, str]:
    """Who may do everything, and the role by which it may."""
    return all_powerful(world, new_user)


@pytest.fixture(scope="module")
def nobody(new_user: NewUser) -> Api:
    """Who may do nothing."""
    return new_user()


@pytest.fixture(scope="module")
def shares(world: World) -> dict[tuple[str, str], list[str]]:
    """Which strings each place of each operation gets."""
    all_places = [
        (str(operation), str(place))
        for operation in OPERATIONS
        for place in places(operation.call(world, full=True))
    ]
    each = math.ceil(USES * len(STRINGS) / len(all_places))
    endless = cycle(STRINGS)
    return {place: list(islice(endless, each)) for place in all_places}


def send(client: Any, call: Call, place: Place, text: str, token: str) -> httpx.Response:
    """Send the request with the text at the place."""
    authorization = f"Bearer {text if place.where == 'header' else token}"
    headers = [(b"authorization", authorization.encode("utf-8", "surrogatepass"))]
    body = call.body
    if place.where == "key":
        body = {**(body or {}), text: text}
    content = None if body is None else json.dumps(body).encode()
    query = "&".join(
        f"{name}={quote(str(value), safe='', errors='surrogatepass')}"
        for name, value in call.params.items()
    )
    response: httpx.Response = client.request(
        call.method, f"{call.url}?{query}", content=content, headers=headers
    )
    return response


def check_problem(response: httpx.Response, text: str) -> None:
    """A refusal is a problem document that tells nothing of the inside."""
    said = response.text
    assert 400 <= response.status_code < 500, said
    assert response.headers["content-type"] == "application/problem+json", said
    told = response.json()
    assert told["status"] == response.status_code
    assert {"type", "title", "detail"} <= told.keys()
    assert internals_in(said, text) == []


def strings_in(value: Any) -> set[str]:
    """All texts of an answer."""
    if isinstance(value, dict):
        return set().union(*map(strings_in, value.values()))
    if isinstance(value, list):
        return set().union(*map(strings_in, value))
    return {value} if isinstance(value, str) else set()


def read_back(reader: Api, call: Call) -> set[str]:
    """All texts that are shown of what the request made."""
    paths = {operation.path for operation in OPERATIONS if operation.method == "GET"}
    name = (call.body or {}).get("name", "")
    if f"{call.path}/{{name}}" in paths:
        return strings_in(reader.get(f"{call.path}/{quote(name)}"))
    if call.path in paths and name:
        [row] = [row for row in reader.get(call.path) if row["name"] == name]
        return strings_in(row)
    return set()


def check_taken(place: Place, call: Call, text: str, reader: Api, anonymous: Api) -> None:
    """What was taken is there, exactly as it was given."""
    body = call.body or {}
    if place.steps == ("new",):
        renewed = log_in(anonymous, reader.user, text)
        renewed.post("/password", old=text, new=PASSWORD)
        reader.token = log_in(anonymous, reader.user, PASSWORD).token
    elif place.steps == ("password",):
        log_in(anonymous, body["name"], text)
    elif place.where == "body":
        assert text in read_back(reader, call)


def own_words(operation: Operation) -> dict[str, Any]:
    """What is not the world's but the caller's."""
    return {"old": PASSWORD} if str(operation) == "POST /password" else {}


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_as_somebody_who_may_do_everything(
    operation: Operation,
    shares: dict[tuple[str, str], list[str]],
    world: World,
    admin: Api,
    anonymous: Api,
    powerful: tuple[Api, str],
) -> None:
    user, role = powerful
    own = own_words(operation)
    for place in places(operation.call(world, full=True, **own)):
        for text in shares[str(operation), str(place)]:
            call = place.put(operation.call(world, full=True, **own), text)
            response = send(anonymous.client, call, place, text, user.token or "")
            if response.is_success:
                check_taken(place, call, text, user, anonymous)
            else:
                check_problem(response, text)
        # Wrong passwords stop logins for a while.
        for name in (user.user, world.names["user"]):
            admin.post(f"/users/{name}/unlock")
    assert user.get("/whoami")["roles"] == [role]


@pytest.mark.parametrize("operation", NEED_A_RIGHT, ids=str)
def test_as_nobody(
    operation: Operation,
    shares: dict[tuple[str, str], list[str]],
    world: World,
    anonymous: Api,
    platform: Platform,
    nobody: Api,
) -> None:
    before = changes(platform, nobody.user)
    for place in places(operation.call(world, full=True)):
        for text in shares[str(operation), str(place)][::STEP]:
            call = place.put(operation.call(world, full=True), text)
            check_problem(send(anonymous.client, call, place, text, nobody.token or ""), text)
    assert changes(platform, nobody.user) == before


@pytest.mark.parametrize("name", xml_names())
def test_xml_as_a_query(name: str, admin: Api, fresh: Callable[[str], str]) -> None:
    for language in ("borealis", "sql"):
        body = {"name": fresh("q"), "language": language, "text": xml_files()[name]}
        check_problem(admin.call("POST", "/queries", json=body), xml_files()[name])


RAW = {
    "empty": b"",
    "no JSON": b"{",
    "not UTF-8": b'{"name": "\xff"}',
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "many digits": b'{"name": ' + b"9" * 10_000 + b"}",
    "not a number": b'{"name": NaN, "role": Infinity, "partitions": 1e999}',
    "half a pair": b'{"name": "\\ud800", "\\udfff": 1}',
    "too large": b'{"name": "' + b"x" * 1_100_000 + b'"}',
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
def test_bodies_that_are_no_requests(raw: bytes, admin: Api, world: World) -> None:
    for operation in OPERATIONS:
        if operation.in_body is None:
            continue
        call = operation.call(world)
        for media_type in ("application/json", "text/plain", "multipart/form-data", "\xff"):
            headers = [
                (b"authorization", f"Bearer {admin.token}".encode()),
                (b"content-type", media_type.encode()),
            ]
            response = admin.client.request(call.method, call.url, content=raw, headers=headers)
            check_problem(response, raw.decode(errors="replace"))


def test_afterwards_the_service_serves_and_the_audit_log_is_whole(admin: Api) -> None:
    assert admin.get("/health")["status"] in {"ok", "degraded"}
    assert admin.get("/audit/verify")["intact"] is True
