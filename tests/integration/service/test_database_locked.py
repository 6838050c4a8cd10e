"""Somebody else keeps the catalog's database locked: a clear error, nothing half done, no leak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, make_url

from catalog.audit_key import AuditKey
from catalog.leases import Leases
from catalog.models import Base
from catalog.settings import Settings
from catalog.store import Catalog
from secadmin.__main__ import TOPIC_LEASE, topic_locks
from secadmin.control.platform import Platform
from secadmin.kafka.access import PrincipalsOf
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import DENIED_TOPIC, parked_reader, reader
from tests.integration.service.conftest import PASSWORD, Api, Scene, decided_by_the_database

LOCK_TIMEOUT_MS = 300

pytestmark = [embedded_only, decided_by_the_database]


@contextmanager
def locked(url: str, *, readers_too: bool = False) -> Iterator[None]:
    """Keep all tables from being written while the block runs.

    With `readers_too` from being read as well, where the database can do that: SQLite's readers
    never wait.
    """
    engine = create_engine(make_url(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            mode = "ACCESS EXCLUSIVE" if readers_too else "EXCLUSIVE"
            tables = ", ".join(sorted(Base.metadata.tables))
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql(f"LOCK TABLE {tables} IN {mode} MODE")
        try:
            yield
        finally:
            connection.exec_driver_sql("ROLLBACK")
    engine.dispose()


@pytest.fixture
def impatient(platform: Platform, service_settings: Settings) -> Iterator[Platform]:
    """The same platform, which does not wait for a lock for as long."""
    key = AuditKey.load(service_settings.secadmin.audit_key_file)
    catalog = Catalog(service_settings.catalog_url, key, lock_timeout_ms=LOCK_TIMEOUT_MS)
    locks = topic_locks(Leases(catalog, TOPIC_LEASE))
    alignment = replace(platform.alignment, catalog=catalog, lock=locks)
    yield replace(platform, catalog=catalog, alignment=alignment)
    catalog.close()


@contextmanager
def served(platform: Platform, scene: Scene) -> Iterator[Scene]:
    """The scene as that platform serves it."""
    with TestClient(create_app(platform), raise_server_exceptions=False) as client:
        yield replace(
            scene,
            platform=platform,
            admin=replace(scene.admin, client=client),
            bob=replace(scene.bob, client=client),
        )


def revocation(scene: Scene) -> dict[str, object]:
    named = {"kind": "output", "name": scene.output}
    return {"role": scene.role, "permissions": ["SUBSCRIBE"], **named}


def says_that_it_is_busy(answer: httpx.Response) -> bool:
    problem = answer.json()
    return (
        answer.status_code == 503
        and answer.headers["content-type"] == "application/problem+json"
        and "Retry-After" in answer.headers
        and problem["title"] == "Unavailable"
        and problem["detail"] == "the catalog cannot be reached or is busy; try again"
    )


def test_who_waits_for_less_than_the_timeout_notices_nothing(scene: Scene) -> None:
    credentials = scene.subscribe()
    topic = str(scene.topic(credentials.username))
    with parked_reader(scene.settings.kafka, credentials, topic, 1) as hostile:
        with ThreadPoolExecutor(1) as pool:
            with locked(scene.settings.catalog_url):
                body = revocation(scene)
                call = pool.submit(scene.admin.call, "POST", "/revocations", json=body)
                assert not wait([call], timeout=1).done, "nobody says yet that it is done"
            assert call.result(60).is_success
        scene.write(topic, "x" * 200_000)
        hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
        assert hostile.values == []


def test_all_calls_say_that_the_catalog_is_busy_and_do_nothing(
    scene: Scene, impatient: Platform, fresh: Callable[[str], str]
) -> None:
    credentials = scene.subscribe(keep=True)
    topic = scene.topic(credentials.username)
    before = scene.admin.get("/grants", kind="output", name=scene.output)
    principals = scene.platform.kafka.principals()
    bob, user, role = scene.bob.user, fresh("u"), scene.role
    with served(impatient, scene) as busy, locked(scene.settings.catalog_url, readers_too=True):
        admin, anonymous = busy.admin, Api(busy.admin.client)
        for api, method, path, body in (
            (admin, "POST", "/revocations", revocation(scene)),
            (admin, "POST", "/grants", revocation(scene) | {"permissions": ["CHANGE PERM"]}),
            (admin, "DELETE", f"/users/{bob}/roles/{role}", None),
            (admin, "POST", f"/users/{bob}/lock", None),
            (admin, "POST", "/users", {"name": user}),
            (admin, "DELETE", f"/roles/{role}", None),
            (admin, "PUT", f"/outputs/{scene.output}/semantics", {"weak": True}),
            (admin, "GET", f"/outputs/{scene.output}", None),
            (busy.bob, "POST", f"/outputs/{scene.output}/subscriptions", {"keep": True}),
            (busy.bob, "DELETE", f"/accesses/{credentials.username}", None),
            (busy.bob, "POST", "/logout", None),
            (busy.bob, "POST", "/password", {"old": PASSWORD, "new": PASSWORD + " 2"}),
            (anonymous, "POST", "/login", {"user": bob, "password": PASSWORD}),
            (anonymous, "POST", "/login", {"user": bob, "password": "a wrong password"}),
        ):
            answer = api.call(method, path, json=body)
            assert says_that_it_is_busy(answer), (method, path, answer.text)
    assert scene.admin.get("/grants", kind="output", name=scene.output) == before
    assert scene.topic(credentials.username) == topic
    assert scene.platform.kafka.principals() == principals
    assert user not in {row["name"] for row in scene.admin.get("/users")}
    with reader(scene.settings.kafka, credentials) as bobs:
        bobs.consumer.subscribe([str(topic)])
        scene.write(str(topic), "1")
        bobs.read_until(lambda: bobs.values == ["1"], "what he may still read")
        scene.revoke("SUBSCRIBE", "output", scene.output)
        scene.write(str(topic), "2")
        bobs.read_until(lambda: DENIED_TOPIC in bobs.errors, "the refusal")
        assert bobs.values == ["1"]


@dataclass
class LockedOnTheWay:
    """Kafka for a service whose database is locked by somebody when it comes to a withdrawal."""

    platform: Platform
    lock: Callable[[], object]
    before: bool

    def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        """Lock the database, before or after Kafka was told."""
        if self.before:
            self.lock()
            self.platform.catalog.record("joe", "look", "system", "allowed")
        self.platform.kafka.withdraw(principals_of, banned)
        self.lock()


@pytest.mark.parametrize("before", [True, False], ids=["before Kafka is told", "after"])
def test_a_revocation_that_is_cut_short_claims_nothing_and_is_carried_out(
    scene: Scene, impatient: Platform, before: bool
) -> None:
    credentials = scene.subscribe()
    topic = str(scene.topic(credentials.username))
    lock = locked(scene.settings.catalog_url)
    kafka = LockedOnTheWay(impatient, lock.__enter__, before)
    cut_short = replace(impatient.alignment, kafka=kafka)  # type: ignore[arg-type]
    with parked_reader(scene.settings.kafka, credentials, topic, 1) as hostile:
        with served(replace(impatient, alignment=cut_short), scene) as busy:
            answer = busy.admin.call("POST", "/revocations", json=revocation(scene))
        lock.__exit__(None, None, None)
        assert says_that_it_is_busy(answer)
        assert scene.topic(credentials.username) is None, "what was decided holds"
        # The lease that could not be given back is in nobody's way but that of other services.
        impatient.alignment.align_pending()
        scene.write(topic, "x" * 200_000)
        hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
        assert hostile.values == []
