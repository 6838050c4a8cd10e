"""The control service over the real broker, on each database, called through its ASGI interface."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from fastapi.testclient import TestClient
from sqlalchemy import select

from catalog.limits import Limits
from catalog.models import Access, AccessTopic
from catalog.passwords import Passwords
from catalog.settings import (
    SecAdminSettings,
    SecFilterSettings,
    Settings,
)
from catalog.user_limits import UserLimits
from deploy.files import secret_file
from secadmin.__main__ import build_platform
from secadmin.control.platform import Platform
from secadmin.control.upkeep import start_up
from secadmin.kafka.principals import Credentials
from secadmin.service.app import create_app
from tests.integration.brokers import EMBEDDED, Broker, kafka_settings
from tests.integration.kafka.clients import secadmin_producer, write
from tests.lanes import is_long
from tests.postgresql import PostgresqlServer

PASSWORD = "correct horse battery"
SQLITE, POSTGRESQL = "sqlite", "postgresql"
sqlite_only = pytest.mark.parametrize("catalog_url", [SQLITE], indirect=True)


@dataclass
class Api:
    """Calls to the service as one user."""

    client: TestClient
    token: str | None = None
    user: str = ""

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Call and return the response as it is."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        response: httpx.Response = self.client.request(method, path, headers=headers, **options)
        return response

    def get(self, path: str, **params: Any) -> Any:
        """GET, which must succeed."""
        return self._json(self.call("GET", path, params=params))

    def post(self, path: str, **body: Any) -> Any:
        """POST, which must succeed."""
        return self._json(self.call("POST", path, json=body))

    def put(self, path: str, **body: Any) -> Any:
        """PUT, which must succeed."""
        return self._json(self.call("PUT", path, json=body))

    def delete(self, path: str) -> Any:
        """DELETE, which must succeed."""
        return self._json(self.call("DELETE", path))

    @staticmethod
    def _json(response: httpx.Response) -> Any:
        assert response.is_success, response.text
        return response.json() if response.content else None


# For a module about what the database decides: its transactions, its locks, the texts that it
# takes. In the sample lane only these run on PostgreSQL too.
decided_by_the_database = pytest.mark.decided_by_the_database
# The same, but the sample lane runs these on PostgreSQL alone, which refuses more texts.
decided_by_postgresql = pytest.mark.decided_by_postgresql
_ON_POSTGRESQL = (decided_by_the_database.name, decided_by_postgresql.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each broker and each database, but not each with each."""

    def wanted(item: pytest.Item) -> bool:
        chosen = item.callspec.params if hasattr(item, "callspec") else {}
        if chosen.get("catalog_url") == SQLITE:
            return is_long() or item.get_closest_marker(decided_by_postgresql.name) is None
        if chosen.get("catalog_url") is None:
            return True
        sampled = is_long() or any(map(item.get_closest_marker, _ON_POSTGRESQL))
        return sampled and chosen.get("broker", EMBEDDED) == EMBEDDED

    items[:] = filter(wanted, items)


@pytest.fixture(scope="session", params=(SQLITE, POSTGRESQL))
def catalog_url(
    request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A database without tables for the services of one broker: it says what that one holds."""
    if request.param == SQLITE:
        yield f"sqlite:///{tmp_path_factory.mktemp('catalog')}/catalog.db"
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    with server.database(migrated=False) as url:
        yield url


@pytest.fixture(scope="session")
def service_settings(
    broker: Broker, catalog_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    folder = tmp_path_factory.mktemp("service")
    nowhere = Path("/nonexistent")
    return Settings(
        catalog_url=catalog_url,
        kafka=kafka_settings(broker),
        secadmin=SecAdminSettings(
            host="127.0.0.1",
            port=0,
            certificate_file=nowhere,
            key_file=nowhere,
            ca_file=nowhere,
            first_password_file=folder / "first-password",
            audit_key_file=secret_file(folder / "audit.key"),
            audit_heads_file=folder / "audit" / "heads",
        ),
        secfilter=SecFilterSettings("local[2]", nowhere, folder / "checkpoints", nowhere),
        # Shared by all tests, whose queries no engine runs and one user owns.
        limits=Limits(slots=100_000, senders=10_000),
        user_limits=UserLimits(running_queries=10_000, reads=10_000, accesses=10_000),
    )


@pytest.fixture(scope="session")
def platform(service_settings: Settings) -> Iterator[Platform]:
    built = build_platform(service_settings, Passwords(cost=4))
    start_up(built)
    built.anchors.start()
    yield built
    built.anchors.close()
    built.catalog.close()


@pytest.fixture(scope="session")
def anonymous(platform: Platform) -> Iterator[Api]:
    with TestClient(create_app(platform), raise_server_exceptions=False) as client:
        yield Api(client)


def log_in(anonymous: Api, user: str, password: str, roles: list[str] | None = None) -> Api:
    """A session of the user."""
    body = {"user": user, "password": password} | ({"roles": roles} if roles is not None else {})
    answer = anonymous.post("/login", **body)
    return Api(anonymous.client, answer["token"], user)


@pytest.fixture(scope="session")
def admin(anonymous: Api, service_settings: Settings) -> Api:
    one_time = service_settings.secadmin.first_password_file.read_text().strip()
    first = log_in(anonymous, "admin", one_time)
    first.post("/password", old=one_time, new=PASSWORD)
    return log_in(anonymous, "admin", PASSWORD)


NewUser = Callable[..., Api]


@pytest.fixture(scope="session")
def new_user(anonymous: Api, admin: Api) -> NewUser:
    """Makes a user with a fresh name and the roles, and logs it in."""

    def make(*roles: str) -> Api:
        name = f"u{secrets.token_hex(4)}"
        one_time = admin.post("/users", name=name)["password"]
        for role in roles:
            if role not in {row["name"] for row in admin.get("/roles")}:
                admin.post("/roles", name=role)
            admin.post(f"/users/{name}/roles", role=role)
        log_in(anonymous, name, one_time).post("/password", old=one_time, new=PASSWORD)
        return log_in(anonymous, name, PASSWORD)

    return make


@pytest.fixture(scope="session")
def fresh() -> Callable[[str], str]:
    """Names that no other test has."""
    return lambda prefix: f"{prefix}{secrets.token_hex(4)}"


ATTRIBUTES = [
    {"name": "ts", "type": "timestamp", "required": True},
    {"name": "symbol", "type": "string"},
    {"name": "price", "type": "double"},
]


def add_stream(owner: Api, name: str, schema: str, **more: object) -> None:
    """A stream over a schema of its own. Tests send old times, so its data moves its time."""
    owner.post("/schemas", name=schema, attributes=ATTRIBUTES)
    timed = {"event_time": "ts", "time": "data"}
    owner.post("/streams", **{"name": name, "schema": schema, **timed, **more})


def let_take_the_aggregate(admin: Api, stream: str) -> None:
    """Let the administrator add queries that give the stream's declared aggregate."""
    body = {"role": "ADMIN", "permissions": ["READ AGGREGATE"], "kind": "stream", "name": stream}
    admin.post("/grants", **body)


def topics_of(platform: Platform, principal: str) -> set[str]:
    """The topics that the catalog lets the principal reach."""
    own = select(AccessTopic.topic).join(Access, Access.id == AccessTopic.access_id)
    with platform.catalog.read() as session:
        return set(session.scalars(own.where(Access.principal == principal)))


RIGHTS = (("VIEW OBJECT", "SUBSCRIBE"), ("VIEW OBJECT", "READ TUPLE"))


@dataclass
class Scene:
    """An output over a stream, and a subscriber who may read it."""

    admin: Api
    platform: Platform
    settings: Settings
    stream: str
    output: str
    role: str
    bob: Api
    producer: Producer

    def subscribe(self, keep: bool = False) -> Credentials:
        """Bob subscribes; the principal's credentials."""
        given = self.bob.post(f"/outputs/{self.output}/subscriptions", keep=keep)
        return Credentials(given["principal"], given["secret"])

    def topic(self, principal: str) -> str | None:
        """The topic that the catalog lets the principal reach, where it is one at most."""
        found = self.topics(principal)
        assert len(found) <= 1
        return next(iter(found), None)

    def topics(self, principal: str) -> set[str]:
        """The topics that the catalog lets the principal reach."""
        return topics_of(self.platform, principal)

    def write(self, topic: str, *values: str) -> None:
        """Write as the data plane does."""
        write(self.producer, topic, values)

    def grant(self, permission: str, kind: str, name: str) -> None:
        """Grant to Bob's role."""
        body = {"role": self.role, "permissions": [permission], "kind": kind, "name": name}
        self.admin.post("/grants", **body)

    def revoke(self, permission: str, kind: str, name: str) -> None:
        """Revoke from Bob's role."""
        body = {"role": self.role, "permissions": [permission], "kind": kind, "name": name}
        self.admin.post("/revocations", **body)


@pytest.fixture
def scene(
    admin: Api,
    platform: Platform,
    service_settings: Settings,
    new_user: NewUser,
    fresh: Callable[[str], str],
) -> Iterator[Scene]:
    stream, output, role = fresh("in"), fresh("out"), fresh("R")
    add_stream(admin, stream, fresh("s"))
    text = f"SELECT ts, symbol FROM {stream}"
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    bob = new_user(role)
    producer = secadmin_producer(service_settings.kafka)
    made = Scene(admin, platform, service_settings, stream, output, role, bob, producer)
    for permission in RIGHTS[0]:
        made.grant(permission, "output", output)
    for permission in RIGHTS[1]:
        made.grant(permission, "stream", stream)
    yield made
