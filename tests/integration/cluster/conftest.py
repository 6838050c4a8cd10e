"""Three Kafka nodes for the tests here, and SecAdmin's parts on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from deploy.runtime import Runtime
from tests.integration.cluster.kafka_cluster import KafkaCluster, running
from tests.integration.cluster.steps import producer_of
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
    return producer_of(parts.settings)
