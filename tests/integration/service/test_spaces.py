"""The space of a role: its queries run in an engine of its own, and share with no other role's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from catalog.engines import FIRST
from catalog.pulse import heartbeat_of
from catalog.spaces import Spaces
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, Scene

pytestmark = embedded_only


def test_each_role_has_names_of_its_own(
    scene: Scene, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    schema = scene.admin.get(f"/streams/{scene.stream}")["schema"]
    other = fresh("R")
    both, one = new_user(scene.role, other), new_user(other)
    for role in (scene.role, other):
        for permission, kind, name in (
            ("ADD QUERY", "system", "system"),
            ("VIEW OBJECT", "schema", schema),
            ("VIEW OBJECT", "stream", scene.stream),
            ("READ TUPLE", "stream", scene.stream),
        ):
            body = {"role": role, "permissions": [permission], "kind": kind, "name": name}
            scene.admin.post("/grants", **body)
    name, text = fresh("q"), f"SELECT * FROM {scene.stream}"
    for role in (scene.role, other):
        added = both.post("/queries", name=f"{role}.{name}", language="sql", text=text)
        assert [each["name"] for each in added["outputs"]] == [f"{role}-{name}"]
        assert both.get(f"/queries/{role}.{name}")["roles"] == [role]
    body = {"language": "sql", "text": text}
    for user, given, status in (
        (one, {"name": f"{scene.role}.{fresh('q')}"}, 403),
        (both, {"name": f"{other}.{name}"}, 409),
        (both, {"name": f"{other}.{fresh('q')}", "as_roles": [scene.role]}, 422),
        (both, {"name": f"{other}."}, 422),
        (both, {"name": f".{name}"}, 422),
        (both, {"name": f"{other}.{name}.{name}"}, 422),
    ):
        assert user.call("POST", "/queries", json=body | given).status_code == status, given


@pytest.fixture
def no_second_engine(scene: Scene) -> Iterator[None]:
    """Afterwards, no other test waits for the second engine. It never began."""
    yield
    with scene.platform.catalog.bookkeeping() as session:
        heartbeat_of(session, "query-2").ended = True


@pytest.mark.usefixtures("no_second_engine")
def test_the_queries_of_a_role_run_in_its_engine_and_no_others_do(
    scene: Scene, fresh: Callable[[str], str]
) -> None:
    scene.grant("ADD QUERY", "system", "system")
    schema = scene.admin.get(f"/streams/{scene.stream}")["schema"]
    scene.grant("VIEW OBJECT", "schema", schema)
    spaces = Spaces(2, {scene.role: "query-2"})
    app = create_app(replace(scene.platform, spaces=spaces))
    own, equal, apart, outside = (fresh("q") for _ in range(4))
    text = f"SELECT * FROM {scene.stream} WHERE price > 1"
    with TestClient(app, raise_server_exceptions=False) as client:
        bob, admin = (Api(client, each.token, each.user) for each in (scene.bob, scene.admin))

        def add(name: str, text: str, **more: Any) -> None:
            bob.post("/queries", name=name, language="sql", text=text, **more)

        def runs() -> dict[str, tuple[str, str]]:
            """The engine and the run of each query's output."""
            ids = {n: bob.get(f"/outputs/{n}")["execution"] for n in (own, equal, apart, outside)}
            found = {each["id"]: (each["engine"], each["run"]) for each in admin.get("/executions")}
            return {name: found[id_] for name, id_ in ids.items()}

        add(own, text, as_roles=[scene.role])
        add(equal, text, as_roles=[scene.role])
        add(apart, f"{text} AND price > 2", as_roles=[scene.role])
        add(outside, text)
        before = runs()
        assert {before[name][0] for name in (own, equal, apart)} == {"query-2"}
        # Equal queries of the space are one execution. The one outside is another, elsewhere.
        assert before[own] == before[equal] != before[apart]
        assert before[outside][0] == FIRST and before[outside][1] != before[own][1]
        bob.post(f"/queries/{apart}/stop")
        bob.post(f"/queries/{apart}/start")
        assert runs() == before
        shown = {name: bob.get(f"/queries/{name}")["roles"] for name in before}
        assert shown == {**{key: [scene.role] for key in (own, equal, apart)}, outside: []}
