"""SecAdmin's parts for Kafka, on the test session's broker."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

import pytest

from catalog.settings import KafkaSettings
from secadmin.kafka.access import TopicAccess
from secadmin.kafka.acl import read_acls, send_acls
from secadmin.kafka.acls import Acls
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.fence import Fence
from secadmin.kafka.fence_writer import FenceWriter
from secadmin.kafka.principals import Credentials, Principals, new_principal_name
from secadmin.kafka.replicas import Replicas
from secadmin.kafka.topics import Topics, TopicSpec
from secadmin.kafka.wire.connections import BrokerConnections
from tests.integration.brokers import Broker, kafka_settings


@dataclass(frozen=True)
class Parts:
    """What SecAdmin does in Kafka."""

    settings: KafkaSettings
    admins: AdminClients
    connections: BrokerConnections
    writer: FenceWriter
    topics: Topics
    principals: Principals
    acls: Acls
    replicas: Replicas
    fence: Fence
    access: TopicAccess

    def close(self) -> None:
        """End the writer, and close the connections."""
        self.writer.close()
        self.connections.close()

    def new_topic(self, prefix: str = "out.o", partitions: int = 1) -> str:
        """A topic with a name of its own."""
        name = f"{prefix}{secrets.token_hex(6)}.{secrets.token_hex(4)}"
        self.topics.create([TopicSpec(name, partitions)])
        return name

    def new_reader(self, topic: str) -> Credentials:
        """A principal that may read the topic."""
        credentials = self.principals.create(new_principal_name("output"))
        self.acls.grant(read_acls(credentials.username, topic))
        return credentials

    def new_writer(self, topic: str) -> Credentials:
        """A sender of the topic."""
        credentials = self.principals.create(new_principal_name("send"))
        self.acls.grant(send_acls(credentials.username, topic))
        return credentials


@pytest.fixture(scope="session")
def settings(broker: Broker) -> KafkaSettings:
    return kafka_settings(broker)


def make_parts(settings: KafkaSettings) -> Parts:
    """The parts, as a SecAdmin that starts makes them."""
    locks: dict[str, Lock] = defaultdict(Lock)
    admins, connections = AdminClients.open(settings), BrokerConnections(settings)
    topics = Topics(admins, settings, connections)
    acls = Acls(admins, connections, settings.replication)
    writer = FenceWriter(settings)
    replicas = Replicas(connections, settings.replication)
    fence = Fence(admins, replicas, writer, connections)
    access = TopicAccess(acls, fence, replicas, lambda topic: locks[topic])
    principals = Principals(admins, removes=settings.removes_users)
    return Parts(
        settings, admins, connections, writer, topics, principals, acls, replicas, fence, access
    )


@pytest.fixture(scope="session")
def new_parts(settings: KafkaSettings) -> Iterator[Callable[[], Parts]]:
    """Makes the parts anew, as a SecAdmin that starts does."""
    made: list[Parts] = []

    def make() -> Parts:
        parts = make_parts(settings)
        made.append(parts)
        return parts

    yield make
    for parts in made:
        parts.close()


@pytest.fixture(scope="session")
def parts(new_parts: Callable[[], Parts]) -> Parts:
    return new_parts()
