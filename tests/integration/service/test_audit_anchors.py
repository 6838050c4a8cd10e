"""The audit log's heads in Kafka and in a file: who may write them, and what they show."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from fastapi.testclient import TestClient

from catalog.audit_key import AuditKey
from catalog.settings import KafkaSettings, Settings
from catalog.store import Catalog
from catalog.topics import HEAD_TOPIC
from secadmin.control.anchors import Anchors, Sender
from secadmin.control.head_file import HeadFile
from secadmin.control.platform import Platform
from secadmin.control.upkeep import reconcile
from secadmin.kafka.acls import Acls
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.head_topic import HeadTopic
from secadmin.kafka.principals import Credentials, Principals
from secadmin.kafka.topics import Topics
from secadmin.kafka.wire.connections import BrokerConnections
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import DENIED_TOPIC, fetch_directly, produce_one
from tests.integration.service.conftest import Api, Scene, sqlite_only
from tests.tampering import cut_off
from tests.waiting import wait_until

pytestmark = [embedded_only, sqlite_only]
TOPIC, FILE = f"the topic {HEAD_TOPIC}", "the file"


def anchors_of(admin: Api) -> dict[str, dict[str, Any]]:
    """What `verify` says of each anchor."""
    return {anchor["place"]: anchor for anchor in admin.get("/audit/verify")["anchors"]}


def act(admin: Api, platform: Platform, role: str) -> int:
    """A change, whose head is in both anchors when this returns; the entry's number."""
    admin.post("/roles", name=role)
    number = platform.catalog.newest_head().seq

    def there() -> bool:
        return all((found["newest"] or 0) >= number for found in anchors_of(admin).values())

    wait_until(there, "the head is in both anchors")
    return number


def test_heads_are_in_the_file_and_in_the_topic(
    admin: Api, platform: Platform, fresh: Callable[[str], str]
) -> None:
    act(admin, platform, fresh("R"))
    found = anchors_of(admin)
    assert found.keys() == {TOPIC, FILE}
    for anchor in found.values():
        assert (anchor["behind"], anchor["problem"], anchor["heads"] > 0) == (False, None, True)
    assert admin.get("/health")["audit_anchors"] == "ok"
    head = admin.get("/audit/head")["head"]
    assert admin.get("/audit/verify", head=head)["intact"] is True
    number, _, code = head.partition(":")
    other = f"{number}:{'0' * len(code)}"
    assert admin.get("/audit/verify", head=other)["first_problem"][0] == int(number)


def test_the_topic_keeps_all_for_ever_and_has_one_writer(
    admin: Api,
    platform: Platform,
    service_settings: Settings,
    fresh: Callable[[str], str],
    tmp_path: Path,
) -> None:
    act(admin, platform, fresh("R"))
    kafka = service_settings.kafka
    client = AdminClient(kafka.client_config(kafka.secadmin))
    [future] = client.describe_configs([ConfigResource(ResourceType.TOPIC, HEAD_TOPIC)]).values()
    config = {name: entry.value for name, entry in future.result().items()}
    kept = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert kept.items() <= config.items()

    own = Credentials(kafka.audit.username, kafka.audit.password())
    # What Kafka allows is what the catalog wants: the upkeep takes nothing away.
    reconcile(platform)
    assert produce_one(kafka, own, HEAD_TOPIC, idempotent=False) is None
    assert AdminClient(kafka.client_config(kafka.audit)).list_topics(timeout=10).topics.keys() == {
        HEAD_TOPIC
    }
    with pytest.raises(ValueError, match=f"error {DENIED_TOPIC}"):
        fetch_directly(kafka, own, HEAD_TOPIC, tmp_path).came_back(10)
    for account in (kafka.ingest, kafka.query):
        engine = Credentials(account.username, account.password())
        assert produce_one(kafka, engine, HEAD_TOPIC, idempotent=False) == DENIED_TOPIC


def test_a_log_that_was_cut_shows_by_either_anchor(
    admin: Api,
    platform: Platform,
    service_settings: Settings,
    fresh: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """In a copy of the database, so that the others' log stays whole."""
    last = act(admin, platform, fresh("R"))
    source = Path(service_settings.catalog_url.removeprefix("sqlite:///"))
    with (
        closing(sqlite3.connect(source)) as old,
        closing(sqlite3.connect(tmp_path / "copy")) as new,
    ):
        old.backup(new)
        with new:
            for statement in cut_off(last - 3):
                new.execute(statement)
    key = AuditKey.load(service_settings.secadmin.audit_key_file)
    cut = Catalog(f"sqlite:///{tmp_path}/copy", key)
    with served(replace(platform, catalog=cut)) as client:
        assert Api(client, admin.token).get("/audit/verify")["intact"] is False
    with closing(cut):
        for state in platform.anchors.states():
            problem = cut.verify_audit([state.kept]).first_problem
            assert problem is not None and problem[1].startswith(
                (f"entries are missing: {state.kept.place}", "the chain is another one")
            )


def test_anchors_that_are_away_hold_up_no_revocation(
    scene: Scene, admin: Api, platform: Platform, service_settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    key, catalog = AuditKey.load(service_settings.secadmin.audit_key_file), platform.catalog
    places = (HeadFile(tmp_path / "taken" / "heads"), unreachable(service_settings.kafka))
    senders = [Sender(each, key, catalog.clock, catalog.newest_head) for each in places]
    away = Anchors(senders)
    scene.subscribe()
    catalog.tell_heads(away.offer)
    away.start()
    try:
        with served(replace(platform, anchors=away)) as client:
            joe = Api(client, admin.token)
            body = {"role": scene.role, "permissions": ["READ TUPLE"]}
            began = time.monotonic()
            joe.post("/revocations", kind="stream", name=scene.stream, **body)
            assert time.monotonic() - began < 5
            wait_until(lambda: all(sender.behind for sender in senders), "both are behind")
            answer = joe.get("/audit/verify")
            assert answer["intact"] is True
            assert [anchor["behind"] for anchor in answer["anchors"]] == [True, True]
            assert joe.get("/health")["audit_anchors"] == "behind"
    finally:
        catalog.tell_heads(platform.anchors.offer)
        away.close()


def unreachable(kafka: KafkaSettings) -> HeadTopic:
    """The topic of a Kafka that is not there."""
    nowhere = replace(kafka, bootstrap="localhost:1")
    admins = AdminClients.open(nowhere)
    connections = BrokerConnections(nowhere)
    topics = Topics(admins, nowhere, connections)
    return HeadTopic(nowhere, topics, Principals(admins), Acls(admins, connections))


@contextmanager
def served(platform: Platform) -> Iterator[TestClient]:
    """The service over that platform."""
    with TestClient(create_app(platform), raise_server_exceptions=False) as client:
        yield client
