"""What a call takes away is gone when it has returned, and what it gives is there.

Tuples are written to the delivery topics here as the data plane writes them; the tests of the whole
way, Spark included, are in `tests/integration/test_scenario.py`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from sqlalchemy import select

from catalog.models import DeliveryClass
from secadmin.control.platform import Platform
from secadmin.kafka.principals import Credentials
from tests.integration.kafka.clients import (
    DENIED_TOPIC,
    client_config,
    parked_reader,
    reader,
    until,
)
from tests.integration.service.conftest import (
    PASSWORD,
    Api,
    NewUser,
    Scene,
    add_stream,
    decided_by_the_database,
    log_in,
    topics_of,
)
from tests.integration.service.takings import (
    TAKING,
    Taking,
    lock,
    remove_stream,
    revoke_tuples,
)

ABSENT = "output-0123456789abcdef01234567"


# The sample lane has every way on SQLite, and a third of them on PostgreSQL too.
@pytest.mark.parametrize(
    "take",
    [
        pytest.param(take, marks=[decided_by_the_database] if number % 3 == 0 else [])
        for number, take in enumerate(TAKING)
    ],
    ids=lambda take: take.__name__,
)
def test_nothing_arrives_after_the_call(scene: Scene, take: Taking) -> None:
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    assert topic is not None
    kafka = scene.settings.kafka
    scene.write(topic, "before")
    with reader(kafka, credentials) as honest:
        honest.consumer.subscribe([topic])
        honest.read_until(lambda: honest.values == ["before"], "the first record")
        with parked_reader(kafka, credentials, topic, 1) as hostile:
            take(scene, credentials.username)
            scene.write(topic, "after", "x" * 200_000)
            hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
            honest.read_until(lambda: DENIED_TOPIC in honest.errors, "the refusal")
            assert hostile.values == []
    assert honest.values == ["before"]


@pytest.mark.parametrize(
    "take", [revoke_tuples, remove_stream, lock], ids=lambda take: take.__name__
)
def test_nothing_arrives_from_a_quarantine_after_the_call(scene: Scene, take: Taking) -> None:
    given = scene.bob.post(f"/streams/{scene.stream}/quarantine")
    credentials, topic = Credentials(given["principal"], given["secret"]), given["topic"]
    with parked_reader(scene.settings.kafka, credentials, topic, 1) as hostile:
        take(scene, credentials.username)
        scene.write(topic, "after", "x" * 200_000)
        hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
        assert hostile.values == []


def test_without_the_fence_the_same_client_does_get_it(scene: Scene) -> None:
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    assert topic is not None
    with parked_reader(scene.settings.kafka, credentials, topic, 1) as hostile:
        # ACLs and even the user itself are gone from every broker, and it is not enough.
        scene.platform.kafka.delete_principal(credentials.username)
        scene.write(topic, "x" * 200_000)
        hostile.read_until(lambda: hostile.values, "the leak that the fence is there to stop")


@decided_by_the_database
def test_what_is_granted_again_is_read_on(scene: Scene) -> None:
    credentials = scene.subscribe()
    topic = scene.topic(credentials.username)
    assert topic is not None
    with reader(scene.settings.kafka, credentials) as bob:
        bob.consumer.subscribe([rf"^out\.{scene.output}\..*"])
        scene.write(topic, "1")
        bob.read_until(lambda: bob.values == ["1"], "the first record")
        revoke_tuples(scene, credentials.username)
        assert scene.topic(credentials.username) is None
        scene.write(topic, "2")
        bob.read_until(lambda: DENIED_TOPIC in bob.errors, "the refusal")
        scene.grant("READ TUPLE", "stream", scene.stream)
        assert scene.topic(credentials.username) == topic, "equal rights, the same class"
        bob.read_until(lambda: bob.values == ["1", "2"], "what came meanwhile")


def test_an_access_is_of_nobody_else(scene: Scene, new_user: NewUser) -> None:
    """Not even of who may change the system: to others it is as if it were not there."""
    principal = scene.subscribe().username
    for other in (new_user(scene.role), scene.admin):
        assert principal not in {access["principal"] for access in other.get("/accesses")}
        theirs = other.call("DELETE", f"/accesses/{principal}")
        absent = other.call("DELETE", f"/accesses/{ABSENT}")
        assert theirs.status_code == 404
        assert theirs.text.replace(principal, ABSENT) == absent.text
    assert scene.topic(principal) is not None
    assert principal in {access["principal"] for access in scene.bob.get("/accesses")}


def test_a_kept_subscription_outlives_its_session(scene: Scene) -> None:
    credentials = scene.subscribe(keep=True)
    topic = scene.topic(credentials.username)
    assert topic is not None
    scene.bob.post("/logout")
    scene.write(topic, "1")
    with reader(scene.settings.kafka, credentials) as bob:
        bob.consumer.subscribe([topic])
        bob.read_until(lambda: bob.values == ["1"], "the record")
    again = log_in(Api(scene.bob.client), scene.bob.user, PASSWORD)
    assert [a["keep"] for a in again.get("/accesses")] == [True]
    scene.admin.delete(f"/users/{scene.bob.user}/roles/{scene.role}")
    assert again.get("/accesses") == [], "its role was taken"


def test_equal_clearances_share_a_class(scene: Scene, new_user: NewUser) -> None:
    carol = new_user(scene.role)
    given = carol.post(f"/outputs/{scene.output}/subscriptions")
    assert scene.topic(given["principal"]) == scene.topic(scene.subscribe().username)


def test_weak_delivery_is_for_who_may_change_the_system(scene: Scene) -> None:
    path = f"/outputs/{scene.output}/semantics"
    assert scene.bob.call("PUT", path, json={"weak": True}).status_code == 403


def test_a_sender_loses_its_topic_at_once(scene: Scene) -> None:
    scene.grant("SEND", "stream", scene.stream)
    given = scene.bob.post(f"/streams/{scene.stream}/senders")
    credentials = Credentials(given["principal"], given["secret"])
    assert _send(scene, credentials, given["topic"]) is None
    scene.revoke("SEND", "stream", scene.stream)
    assert _send(scene, credentials, given["topic"]) == DENIED_TOPIC


def _send(scene: Scene, credentials: Credentials, topic: str) -> int | None:
    outcome: list[Any] = []
    producer = Producer(client_config(scene.settings.kafka, credentials))
    producer.produce(topic, b"{}", on_delivery=lambda error, _: outcome.append(error))
    producer.flush(20)
    return outcome[0].code() if outcome[0] is not None else None


def test_the_quarantine_is_for_who_may_read_the_whole_stream(scene: Scene) -> None:
    given = scene.bob.post(f"/streams/{scene.stream}/quarantine")
    assert scene.topic(given["principal"]) == f"quarantine.{scene.stream}"
    revoke_tuples(scene, given["principal"])
    assert scene.topic(given["principal"]) is None
    assert scene.bob.call("POST", f"/streams/{scene.stream}/quarantine", json={}).status_code == 403


def test_an_owner_reads_no_data_by_owning(
    admin: Api, new_user: NewUser, fresh: Callable[[str], str], platform: Platform
) -> None:
    stream, schema, role = fresh("in"), fresh("s"), fresh("R")
    add_stream(admin, stream, schema)
    al = new_user(role)
    admin.post("/grants", role=role, permissions=["ADD QUERY"], kind="system")
    admin.post("/grants", role=role, permissions=["VIEW OBJECT"], kind="stream", name=stream)
    admin.post("/grants", role=role, permissions=["VIEW OBJECT"], kind="schema", name=schema)
    output = fresh("q")
    al.post("/queries", name=output, language="sql", text=f"SELECT symbol FROM {stream}")
    given = al.post(f"/outputs/{output}/subscriptions")
    assert topics_of(platform, given["principal"]) == set()


def test_a_class_has_a_name_that_says_nothing(scene: Scene) -> None:
    topic = scene.topic(scene.subscribe().username)
    with scene.platform.catalog.read() as session:
        row = session.scalars(select(DeliveryClass).where(DeliveryClass.topic == topic)).one()
    assert len(row.name) == 16
    assert int(row.name, 16) >= 0
    until(lambda: row.opened_at, "the class to be open")
    assert secrets.compare_digest(f"out.{scene.output}.{row.name}", row.topic)
