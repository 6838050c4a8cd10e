"""What happens by time: expiry, names that become free, Kafka users that go, leftovers at start."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from catalog.engines import all_engines
from catalog.errors import Unavailable
from catalog.executions import execution_of
from catalog.models import AuditEntry, DeliveryClass, Session, Withdrawal
from catalog.run_names import query_run_name
from catalog.runs import RunReport, fingerprint
from catalog.sessions import token_hash
from catalog.settings import Settings
from catalog.wanted import fed_classes, generation, report_applied, report_status, wanted_runs
from secadmin.control import logins, upkeep
from secadmin.control.platform import Platform
from secadmin.control.upkeep import Upkeep, delete_removed, retire_ended, start_up
from secadmin.kafka.access import PrincipalsOf
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.fence import FenceNotProven
from secadmin.kafka.principals import Credentials, Principals
from tests.heartbeat import let_beat
from tests.integration.kafka.clients import DENIED_TOPIC, parked_reader, until
from tests.integration.service.conftest import Api, NewUser, Scene, add_stream

Fresh = Callable[[str], str]


def apply_generation(platform: Platform) -> None:
    """What the engines do once nothing runs that is not wanted."""
    with platform.catalog.bookkeeping() as session:
        for engine in all_engines(1):
            report_applied(session, engine, generation(session))


def test_a_name_is_free_once_its_topics_are_gone(
    admin: Api, platform: Platform, fresh: Fresh
) -> None:
    stream, schema = fresh("in"), fresh("s")
    add_stream(admin, stream, schema)
    apply_generation(platform)
    admin.delete(f"/streams/{stream}")
    assert admin.call("GET", f"/streams/{stream}").status_code == 404
    body = {"name": stream, "schema": schema}
    delete_removed(platform)
    busy = admin.call("POST", "/streams", json=body)
    assert busy.status_code == 409, "the runner has not let go of it yet"
    assert "still being removed" in busy.json()["detail"]
    apply_generation(platform)
    delete_removed(platform)
    admin.post("/streams", **body)


def test_the_topics_of_a_removed_query_go_with_it(
    scene: Scene,
) -> None:
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    query = scene.admin.get(f"/outputs/{scene.output}")["query"]
    scene.admin.delete(f"/queries/{query}")
    apply_generation(scene.platform)
    delete_removed(scene.platform)
    with pytest.raises(Unavailable):
        scene.platform.kafka.end_offsets([str(topic)])


def test_closed_kafka_users_are_told_of_and_go_where_the_cluster_bears_it(
    platform: Platform,
    service_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    closing = Principals(AdminClients.open(service_settings.kafka), removes=False)
    # The first of all that other tests left, by its name.
    name = f"output-{'0' * 10}{secrets.token_hex(7)}"
    closing.create(name)
    closing.delete(name)
    assert name not in closing.list_names()
    assert name in platform.kafka.principals()
    monkeypatch.setattr(upkeep, "MANY_CLOSED", 1)
    monkeypatch.setattr(upkeep, "RETIRED_A_TICK", 1)
    sweeping = Upkeep(platform)
    sweeping._sweep_principals()
    assert "users of ended accesses, which cannot log in" in caplog.text
    # Only now, so that none goes that is just being made.
    assert name in platform.kafka.principals()
    sweeping._sweep_principals()
    assert name not in platform.kafka.principals()


def test_the_kafka_user_of_an_ended_access_goes(scene: Scene) -> None:
    credentials = scene.subscribe()
    kept = scene.subscribe()
    assert {credentials.username, kept.username} <= scene.platform.kafka.principals()
    scene.bob.delete(f"/accesses/{credentials.username}")

    def is_gone() -> bool:
        # Some at a time, those that other tests left first.
        retire_ended(scene.platform)
        return credentials.username not in scene.platform.kafka.principals()

    until(is_gone, "its turn")
    assert kept.username in scene.platform.kafka.principals()


def test_an_expired_session_takes_its_accesses_along(scene: Scene) -> None:
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    assert topic is not None
    with parked_reader(scene.settings.kafka, credentials, topic, 1) as hostile:
        _let_expire(scene.platform, scene.bob)
        logins.end_expired(scene.platform)
        scene.write(topic, "x" * 200_000)
        hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
        assert hostile.values == []
    assert scene.bob.call("GET", "/whoami").status_code == 401


def _let_expire(platform: Platform, user: Api) -> None:
    with platform.catalog.bookkeeping() as session:
        own = update(Session).where(Session.token_hash == token_hash(str(user.token)))
        session.execute(own.values(expires_at=platform.clock() - timedelta(seconds=1)))


def test_what_was_decided_before_a_crash_is_done_at_start(scene: Scene) -> None:
    """The service is killed between the commit of a revocation and Kafka."""
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    assert topic is not None
    crashing = replace(scene.platform, alignment=_NoAlignment())  # type: ignore[arg-type]
    with parked_reader(scene.settings.kafka, credentials, topic, 1) as hostile:
        _let_expire(scene.platform, scene.bob)
        logins.end_expired(crashing)
        assert _open_withdrawals(scene.platform, topic) == 1
        start_up(scene.platform)
        assert _open_withdrawals(scene.platform, topic) == 0
        scene.write(topic, "x" * 200_000)
        hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
        assert hostile.values == []


class _NoAlignment:
    def align(self, topics: object) -> None:
        """The process ends here."""


def _open_withdrawals(platform: Platform, topic: str) -> int:
    with platform.catalog.read() as session:
        pending = select(Withdrawal).where(Withdrawal.topic == topic, Withdrawal.done_at.is_(None))
        return len(list(session.scalars(pending)))


def test_acls_that_the_catalog_does_not_know_are_taken_away_at_start(
    scene: Scene,
) -> None:
    principal = f"output-{secrets.token_hex(12)}"
    password = scene.platform.kafka.create_principal(principal)
    topic = scene.topic(scene.subscribe().username)
    assert topic is not None
    scene.platform.kafka.allow_read({topic: [principal]})
    stranger = Credentials(principal, password)
    with parked_reader(scene.settings.kafka, stranger, topic, 1) as hostile:
        start_up(scene.platform)
        scene.write(topic, "x" * 200_000)
        hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
        assert hostile.values == []
    assert _open_withdrawals(scene.platform, topic) == 0
    noted = _noted(scene.platform, "take away unknown ACL", f"topic {topic}")
    assert noted == [{"principal": principal, "topic": topic, "operation": "READ"}]


def _noted(platform: Platform, action: str, what: str) -> list[dict[str, Any]]:
    with platform.catalog.read() as session:
        entries = select(AuditEntry.detail)
        own = entries.where(AuditEntry.action == action, AuditEntry.object == what)
        return list(session.scalars(own))


def test_nothing_is_written_where_a_fence_is_not_proven(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    assert topic is not None and topic in _written(scene.platform)

    def not_proven(principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        raise FenceNotProven(principals_of, "the broker is not what it was")

    with monkeypatch.context() as broken:
        broken.setattr(scene.platform.kafka, "withdraw", not_proven)
        body = {"role": scene.role, "permissions": ["READ TUPLE"], "kind": "stream"}
        failed = scene.admin.call("POST", "/revocations", json=body | {"name": scene.stream})
        start_up(scene.platform)
    assert failed.status_code == 503
    assert topic not in _written(scene.platform), "the run stands still, and all else is served"
    scene.platform.alignment.align_pending()
    assert topic in _written(scene.platform), "and goes on once the fence is proven"


def _written(platform: Platform) -> set[str]:
    with platform.catalog.read() as session:
        runs = wanted_runs(session)
    return {cls.topic for run in runs for cls in getattr(run, "classes", ())}


def test_a_subscription_is_fed_when_the_runner_says_so(
    scene: Scene,
) -> None:
    credentials = scene.subscribe()
    assert [a["fed"] for a in scene.bob.get("/accesses")] == [False]
    with scene.platform.catalog.read() as session:
        topic = scene.topic(credentials.username)
        row = session.scalars(select(DeliveryClass).where(DeliveryClass.topic == topic)).one()
        name = query_run_name(execution_of(session, row.output_id))
        run = next(r for r in wanted_runs(session) if r.name == name)
    with scene.platform.catalog.bookkeeping() as session:
        now = scene.platform.clock()
        report_status(session, RunReport(run.name, "running", "", fingerprint(run)), now)
    assert [a["fed"] for a in scene.bob.get("/accesses")] == [False], "it may be dead"
    let_beat(scene.platform)
    assert [a["fed"] for a in scene.bob.get("/accesses")] == [True]
    with scene.platform.catalog.read() as session:
        fed = fed_classes(session, [0, row.id], all_engines(1))
        assert fed == {row.id}, "none that is not there"


def test_a_class_that_several_share_loses_only_the_one(
    scene: Scene,
    new_user: NewUser,
) -> None:
    carol = new_user(scene.role)
    given = carol.post(f"/outputs/{scene.output}/subscriptions")
    topic = scene.topic(given["principal"])
    bob = scene.subscribe()
    scene.bob.delete(f"/accesses/{bob.username}")
    assert scene.topic(bob.username) is None
    assert scene.topic(given["principal"]) == topic
