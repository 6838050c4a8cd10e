"""Three Kafka nodes for the tests here, and SecAdmin's parts on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from deploy.runtime import Runtime
from tests.integration.cluster.kafka_cluster import KafkaCluster, running
from tests.integration.kafka.conftest import Parts, make_parts


@pytest.fixture(scope="session")
def cluster(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """The cluster of this test session."""
    with running(tmp_path_factory.mktemp("cluster"), runtime) as started:
        yield started


@pytest.fixture
def whole(cluster: KafkaCluster) -> KafkaCluster:
    """The cluster, with all nodes."""
    cluster.await_all()
    return cluster


@pytest.fixture(scope="session")
def parts(cluster: KafkaCluster) -> Iterator[Parts]:
    made = make_parts(cluster.settings)
    yield made
    made.close()


@pytest.fixture
def producer(parts: Parts) -> Producer:
    """As the data plane has one; it gives up soon on a leader that hangs."""
    own = {
        "linger.ms": 0,
        "enable.idempotence": True,
        "log_level": 0,
        "socket.timeout.ms": 5_000,
        "request.timeout.ms": 5_000,
        "topic.metadata.refresh.interval.ms": 1_000,
    }
    return Producer(parts.settings.client_config(parts.settings.secadmin) | own)
