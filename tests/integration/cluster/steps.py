"""What the tests of a cluster do: write, find brokers, take a right, and see who still reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from confluent_kafka import KafkaError, Producer, TopicPartition

from catalog.errors import Unavailable
from catalog.settings import KafkaSettings
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.principals import Credentials
from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import NO_TAGS, compact_length, compact_string, int32
from tests.integration.cluster.hostile import PARKED, POLLING, Hostile
from tests.integration.cluster.kafka_cluster import NODES, PATIENCE_S, KafkaCluster, Member
from tests.integration.kafka.clients import reader
from tests.integration.kafka.conftest import Parts
from tests.waiting import wait_until

# As many bytes as no fetch of a test waits for in vain.
FILLER = "later" * 20_000
T = TypeVar("T")
_DESCRIBE_QUORUM = 55


def producer_of(settings: KafkaSettings) -> Producer:
    """As the data plane has one; it gives up soon on a leader that hangs."""
    own = {
        "linger.ms": 0,
        "enable.idempotence": True,
        "log_level": 0,
        "socket.timeout.ms": 5_000,
        "request.timeout.ms": 5_000,
        "topic.metadata.refresh.interval.ms": 1_000,
    }
    return Producer(settings.client_config(settings.secadmin) | own)


def asking(cluster: KafkaCluster, numbers: set[int]) -> KafkaSettings:
    """The cluster's settings for a client that begins at these brokers.

    One that is cut off still says that it leads, and a producer that knows it alone believes that.
    """
    places = (cluster.members[number].platform for number in sorted(numbers))
    return replace(cluster.settings, bootstrap=",".join(f"{p.host}:{p.port}" for p in places))


def write(producer: Producer, topic: str, *values: str) -> None:
    """Write values until all replicas in sync have them; that may take a new leader."""
    failures: list[KafkaError] = []
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda e, _: failures.append(e) if e else None
        )
    # A leader that is cut off goes on to take records, and never has them on other replicas.
    assert producer.flush(120) == 0
    assert failures == []


def leader_of(cluster: KafkaCluster, topic: str) -> Member:
    """The topic's leader, as any node knows it that answers."""
    for member in cluster.members.values():
        if cluster.can_log_in(member):
            leader = cluster.view_of(member, topic).partitions[topic, 0].leader
            if leader is not None:
                return cluster.members[leader]
    raise AssertionError(f"{topic} has no leader")


def follower_of(cluster: KafkaCluster, topic: str) -> Member:
    """A broker that does not lead the topic; never the first, which the platform asks to hand on.

    One that is cut off hands nothing on.
    """
    leader = leader_of(cluster, topic)
    return [m for m in cluster.members.values() if m is not leader][-1]


def controller_of(cluster: KafkaCluster, _topic: str) -> Member:
    """The node whose controller is the active one."""
    own = compact_string("__cluster_metadata") + compact_length(1) + int32(0) + NO_TAGS + NO_TAGS
    for member in cluster.members.values():
        if cluster.can_log_in(member):
            connection = BrokerConnection(member.platform, cluster.settings)
            request = (_DESCRIBE_QUORUM, 0, compact_length(1) + own + NO_TAGS)
            answer = connection.request(*request, flexible=True)
            connection.close()
            assert answer.int16() == 0
            answer.compact_length(), answer.compact_string(), answer.compact_length()
            answer.int32(), answer.int16()
            return cluster.members[answer.int32()]
    raise AssertionError("no node answers")


@contextmanager
def hostiles(
    cluster: KafkaCluster, credentials: Credentials, topic: str, *, but: int | None = None
) -> Iterator[list[Hostile]]:
    """At each broker, or each but one, a client whose fetch is parked, and one that polls."""
    clients = [
        Hostile(cluster, member, credentials, topic, limits)
        for member in cluster.members.values()
        for limits in (PARKED, POLLING)
        if member.node.id != but
    ]
    for each in clients:
        each.start()
    try:
        wait_until(
            lambda: all(
                each.has_a_fetch_under_way() if each.limits is PARKED else each.served > 0
                for each in clients
            ),
            "all clients read",
            PATIENCE_S,
        )
        yield clients
    finally:
        for each in clients:
            each.close()


def expect_shut_out(clients: list[Hostile], *, at: set[int]) -> None:
    """Each client of these brokers is refused, and none of all has got a later record."""
    for each in clients:
        if each.member.node.id in at and each.limits is POLLING:
            wait_until(each.is_refused, f"node {each.member.node.id} refuses", PATIENCE_S)
    assert [each.member.node.id for each in clients if each.leaks()] == []


def expect_read(parts: Parts, topic: str, count: int) -> None:
    """A new subscriber gets all values, each once."""
    with reader(parts.settings, parts.new_reader(topic)) as honest:
        honest.consumer.assign([TopicPartition(topic, 0, 0)])
        honest.read_until(lambda: len(honest.values) >= count, "all records")
        honest.drain()
    assert len(honest.values) == len(set(honest.values)) == count


def replenished(parts: Parts, cluster: KafkaCluster, topic: str) -> None:
    """Wait until the topic has all its replicas again, on brokers that hold all of it."""

    def whole() -> bool:
        parts.replicas.replenish(live_brokers(parts.connections))
        described = parts.topics.describe([topic])[topic].partitions[0]
        return len(described.replicas) == len(described.isr) == NODES

    wait_until(whole, "all replicas are in sync again", PATIENCE_S)


def withdrawn(parts: Parts, topic: str, principal: str) -> float:
    """Take the topic from the principal, again and again as the upkeep does; how long it took."""
    began = time.monotonic()

    def is_done() -> bool:
        try:
            parts.access.withdraw(topic, [principal])
        except Unavailable as failure:
            print(f"not yet, after {time.monotonic() - began:.1f} s: {failure}")
            return False
        return True

    wait_until(is_done, "the withdrawal", PATIENCE_S)
    return time.monotonic() - began


def count_as_dead(cluster: KafkaCluster, member: Member) -> None:
    """Wait until the others count it as dead."""
    number = member.node.id
    others = [each for each in cluster.members.values() if each is not member]
    wait_until(
        lambda: not any(number in cluster.alive_for(other) for other in others),
        "it counts as dead",
        PATIENCE_S,
    )


def made_by_the_others(make: Callable[[], T]) -> T:
    """What is made while a broker is away, through which some requests go in vain."""
    made: list[T] = []

    def is_made() -> bool:
        with suppress(Unavailable):
            made.append(make())
        return bool(made)

    wait_until(is_made, "it is made", PATIENCE_S)
    return made[0]
