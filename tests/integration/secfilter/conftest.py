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

from deploy.runtime import Runtime
from secfilter.checkpoint import Checkpoints
from secfilter.kafka_options import kafka_options
from secfilter.pace import Pace
from secfilter.positions import Positions
from secfilter.queries import Engine
from tests.integration.brokers import Broker, kafka_settings
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Plane

_PREFIXES = ("in.", "lab.", "quarantine.", "out.")


@pytest.fixture(scope="session")
def rights(broker: Broker) -> None:
    """What SecAdmin gives the platform's account, here by prefix."""
    account = f"User:{broker.secfilter.username}"
    wanted = [(ResourceType.TOPIC, p, o) for p in _PREFIXES for o in _operations(p)]
    acls = [
        AclBinding(kind, name, ResourcePatternType.PREFIXED, account, "*", operation, _ALLOW)
        for kind, name, operation in wanted
    ]
    admin = AdminClient(broker.admin_config())
    for future in admin.create_acls(acls).values():
        future.result()


_ALLOW = AclPermissionType.ALLOW


def _operations(prefix: str) -> tuple[AclOperation, ...]:
    if prefix == "in.":
        return (AclOperation.READ,)
    if prefix == "lab.":
        return (AclOperation.READ, AclOperation.WRITE)
    return (AclOperation.WRITE,)


@pytest.fixture
def plane(spark: SparkSession, broker: Broker, rights: None, tmp_path: Path) -> Iterator[Plane]:
    """A data plane with checkpoints of its own."""
    settings = kafka_settings(broker)
    config = {**settings.client_config(settings.secfilter), "broker.address.family": "v4"}
    engine = Engine(
        spark=spark,
        kafka=kafka_options(settings, tmp_path / "kafka"),
        positions=Positions(config),
        checkpoints=Checkpoints(tmp_path / "checkpoints"),
        id_key="0" * 64,
        pace=Pace(query_ms=500, ingest_ms=500),
    )
    admin = AdminClient(broker.admin_config())
    made = Plane(broker, engine, admin, Producer(broker.admin_config()))
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
