"""Every operation of the API, from its own OpenAPI document, with a well-formed request for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import httpx
from fastapi.openapi.utils import get_openapi

from secadmin.service.routes import ROUTERS
from tests.integration.service.conftest import Api
from tests.integration.service.world import World

DOCUMENT = get_openapi(
    title="SecAdmin", version="1", routes=[route for r in ROUTERS for route in r.routes]
)
OPEN_TO_ALL = {"POST /login", "GET /health"}
# About the caller's own session, password and accesses: no permission opens them for others.
OWN_AFFAIRS = {
    "POST /logout",
    "GET /whoami",
    "POST /password",
    "DELETE /whoami/roles/{role}",
    "GET /accesses",
    "GET /accesses/{principal}",
    "GET /wall",
    "DELETE /accesses/{principal}",
    "POST /accesses/{principal}/backfills",
}


@dataclass(frozen=True)
class Call:
    """A request; the names of the path's parameters are in braces."""

    method: str
    path: str
    path_values: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] | None = None

    @property
    def url(self) -> str:
        """The path with its values."""
        url = self.path
        for name, value in self.path_values.items():
            url = url.replace(f"{{{name}}}", quote(value, safe="", errors="surrogatepass"))
        return url

    def send(self, caller: Api) -> httpx.Response:
        """Send it as the caller."""
        return caller.call(self.method, self.url, params=self.params, json=self.body)


@dataclass(frozen=True)
class Operation:
    """A method on a path, with the names that it takes in path, query and body."""

    method: str
    path: str
    in_path: tuple[str, ...]
    in_query: dict[str, bool]
    in_body: dict[str, bool] | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def call(
        self, world: World, *, full: bool = False, also: Collection[str] = (), **chosen: Any
    ) -> Call:
        """A well-formed request about the world: all that is required, `also` these, and `chosen`.

        With `full` every optional part is given. A part without a value fails here: a new field
        needs one in `World.values`.
        """
        values = world.values(chosen.get("kind", "stream")) | chosen

        def given(names: dict[str, bool]) -> dict[str, Any]:
            wanted = [n for n, must in names.items() if must or full or n in also or n in chosen]
            return {name: self._value(name, values, names) for name in wanted}

        return Call(
            self.method,
            self.path,
            {name: world.in_path(self.method, self.path, name) for name in self.in_path},
            given(self.in_query),
            None if self.in_body is None else given(self.in_body),
        )

    @staticmethod
    def _value(name: str, values: dict[str, Any], names: dict[str, bool]) -> Any:
        # Beside a kind, a name is that of an object; else of one that is to be made.
        return values["object" if name == "name" and "kind" in names else name]


def operations() -> Iterator[Operation]:
    """All operations of the document."""
    for path, methods in DOCUMENT["paths"].items():
        for method, described in methods.items():
            parameters = described.get("parameters", [])
            query = {p["name"]: p["required"] for p in parameters if p["in"] == "query"}
            in_path = tuple(p["name"] for p in parameters if p["in"] == "path")
            assert len(query) + len(in_path) == len(parameters), f"{method} {path}: {parameters}"
            yield Operation(method.upper(), path, in_path, query, _body(described))


def _body(described: dict[str, Any]) -> dict[str, bool] | None:
    """The names of a body's parts, and whether each is required."""
    if "requestBody" not in described:
        return None
    reference = described["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]]
    return {name: name in schema.get("required", ()) for name in schema["properties"]}


OPERATIONS = tuple(operations())
NEED_A_RIGHT = tuple(o for o in OPERATIONS if str(o) not in OPEN_TO_ALL | OWN_AFFAIRS)


@dataclass(frozen=True)
class Place:
    """Where a text is in a request: path, query, a leaf of the body, or the header."""

    where: str
    steps: tuple[str | int, ...]

    def __str__(self) -> str:
        return ".".join(map(str, (self.where, *self.steps)))

    def put(self, call: Call, text: str) -> Call:
        """The request with the text there (the header is the sender's affair)."""
        if self.where == "path":
            return replace(call, path_values={**call.path_values, str(self.steps[0]): text})
        if self.where == "query":
            return replace(call, params={**call.params, str(self.steps[0]): text})
        if self.where == "body":
            return replace(call, body=_replaced(call.body, self.steps, text))
        return call


def places(call: Call) -> list[Place]:
    """Every place of the request where a text can be, a new key of the body among them."""
    found = [Place("path", (name,)) for name in call.path_values]
    found += [Place("query", (name,)) for name in call.params]
    if call.body is not None:
        found += [Place("body", steps) for steps in _texts(call.body)]
        found.append(Place("key", ()))
    return [*found, Place("header", ())]


def _texts(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*steps, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*steps, number))
    elif isinstance(value, str):
        yield steps


def _replaced(value: Any, steps: tuple[str | int, ...], text: str) -> Any:
    if not steps:
        return text
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        return {k: _replaced(v, rest, text) if k == first else v for k, v in value.items()}
    return [_replaced(v, rest, text) if n == first else v for n, v in enumerate(value)]
