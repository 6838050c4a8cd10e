"""Each limit of a user says which one was met and what would fit; other users are not touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from fastapi.testclient import TestClient

from catalog.user_limits import UserLimits
from secadmin.control.platform import Platform
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, add_stream, sqlite_only

pytestmark = [embedded_only, sqlite_only]


@contextmanager
def limited(platform: Platform, user: Api, limits: UserLimits) -> Iterator[Api]:
    """The user at a service on the same catalog that has these limits."""
    app = create_app(replace(platform, user_limits=limits))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Api(client, user.token, user.user)


def refused(user: Api, path: str, **body: object) -> str:
    response = user.call("POST", path, json=body)
    assert response.status_code == 409, response.text
    return str(response.json()["detail"])


def test_running_queries_reads_and_accesses(
    admin: Api, new_user: NewUser, platform: Platform, fresh: Callable[[str], str]
) -> None:
    stream, schema, role = fresh("in"), fresh("s"), fresh("R")
    add_stream(admin, stream, schema)
    al = new_user(role)
    admin.post("/grants", role=role, kind="system", permissions=["ADD QUERY"])
    for kind, name in (("schema", schema), ("stream", stream)):
        admin.post("/grants", role=role, kind=kind, name=name, permissions=["VIEW OBJECT"])
    one = f"SELECT symbol FROM {stream}"
    first, second = fresh("q"), fresh("q")

    def query(name: str, text: str = one) -> dict[str, object]:
        return {"name": name, "language": "sql", "text": text}

    with limited(platform, al, UserLimits(running_queries=1, reads=2, accesses=1)) as user:
        three = " UNION ALL ".join([one] * 3)
        told = refused(user, "/queries", **query(first, three))
        assert "reads of running queries of a user is 2: there are 0, this needs 3 more" in told
        user.post("/queries", **query(first, f"{one} UNION ALL {one}"))
        told = refused(user, "/queries", **query(second))
        assert "running queries of a user is 1: there are 1, this needs 1 more, and 0" in told
        user.post(f"/queries/{first}/stop")
        user.post("/queries", **query(second))
        assert "limit of running queries" in refused(user, f"/queries/{first}/start")
        user.post(f"/queries/{second}/start")  # It runs already, and takes nothing more.
        principal = user.post(f"/outputs/{first}/subscriptions")["principal"]
        told = refused(user, f"/outputs/{first}/subscriptions")
        assert "the limit of accesses of a user is 1" in told
        user.delete(f"/accesses/{principal}")
        user.post(f"/outputs/{first}/subscriptions")
    with limited(platform, al, UserLimits(running_queries=5, reads=2)) as user:
        told = refused(user, f"/queries/{first}/start")
        assert "there are 1, this needs 2 more, and 1 would fit; stop a query first" in told
