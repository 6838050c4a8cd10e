"""Fixtures of the data plane's tests against the real broker."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from catalog.topics import ECHO_TOPIC, RESULT_ECHO_TOPIC
from deploy.runtime import Runtime
from secadmin.kafka.acl import EngineAccounts, TopicAcl
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.topics import Topics, TopicSpec
from secadmin.kafka.wire.connections import BrokerConnections
from secfilter.checkpoint import Checkpoints
from secfilter.kafka_options import kafka_options
from secfilter.pace import Pace
from secfilter.positions import Positions
from secfilter.queries import Engine
from secfilter.ticker import Ticking
from tests.integration.brokers import Broker, kafka_settings
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Login, Plane


@pytest.fixture(scope="session")
def rights(broker: Broker) -> None:
    """What SecAdmin gives the engines, here by the prefixes of the plane's topics."""
    settings = kafka_settings(broker)
    topics = Topics(AdminClients.open(settings), settings, BrokerConnections(settings))
    topics.create([TopicSpec(ECHO_TOPIC), TopicSpec(RESULT_ECHO_TOPIC)])
    engines = EngineAccounts(broker.ingest.username, broker.query.username)
    of_streams = (
        engines.stream_acls(prefix) for prefix in ("in.s", "lab.s", "quarantine.s", ECHO_TOPIC)
    )
    of_outputs = (engines.output_acls(prefix) for prefix in ("lab.o", "out.o", RESULT_ECHO_TOPIC))
    acls = [_by_prefix(acl) for each in (*of_streams, *of_outputs) for acl in each]
    admin = AdminClient(broker.admin_config())
    for future in admin.create_acls(acls).values():
        future.result()


def _by_prefix(acl: TopicAcl) -> AclBinding:
    place = (ResourceType.TOPIC, acl.topic, ResourcePatternType.PREFIXED)
    right = (AclOperation[acl.operation], AclPermissionType.ALLOW)
    return AclBinding(*place, f"User:{acl.principal}", "*", *right)


@pytest.fixture
def plane(spark: SparkSession, broker: Broker, rights: None, tmp_path: Path) -> Iterator[Plane]:
    """A data plane with checkpoints of its own."""
    settings = kafka_settings(broker)
    logins = {
        name: Login(
            kafka_options(settings, account, tmp_path / "kafka" / name),
            Positions({**settings.client_config(account), "broker.address.family": "v4"}),
            Ticking(settings.client_config(account), lambda _: {}, frozenset, 0.2),
        )
        for name, account in (("ingest", settings.ingest), ("query", settings.query))
    }
    engine = Engine(
        spark=spark,
        kafka=logins["ingest"].kafka,
        positions=logins["ingest"].positions,
        checkpoints=Checkpoints(tmp_path / "checkpoints"),
        id_key="0" * 64,
        pace=Pace(query_ms=500, ingest_ms=500),
        ticking=logins["ingest"].ticking,
    )
    admin = AdminClient(broker.admin_config())
    made = Plane(broker, engine, logins["query"], admin, Producer(broker.admin_config()))
    yield made
    for query in made.queries:
        query.stop()


@pytest.fixture
def deployment(plane: Plane, runtime: Runtime, tmp_path: Path) -> Iterator[Deployment]:
    """A catalog without runs, and no runner yet."""
    folder = tmp_path / "deployment"
    folder.mkdir()
    made = Deployment(plane, runtime, folder)
    yield made
    made.end()


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Wait until something is so, 90 s at most."""

    def wait(condition: Callable[[], bool], timeout_s: float = 90.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "it did not become so in time"
            time.sleep(0.05)

    return wait
