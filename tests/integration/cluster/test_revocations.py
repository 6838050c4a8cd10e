"""Revocations on three brokers: nothing later reaches a client of any of them, whatever fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import pytest
from confluent_kafka import Producer

from catalog.errors import Unavailable
from secadmin.kafka.brokers import live_brokers
from tests.integration.cluster.kafka_cluster import NODES, KafkaCluster, Member
from tests.integration.cluster.steps import (
    FILLER,
    asking,
    controller_of,
    expect_read,
    expect_shut_out,
    follower_of,
    hostiles,
    leader_of,
    producer_of,
    replenished,
    withdrawn,
    write,
)
from tests.integration.kafka.clients import DENIED_CLUSTER, DENIED_TOPIC, produce_one
from tests.integration.kafka.conftest import Parts
from tests.lanes import number_of

# A cluster's start alone takes longer than what the sample lane has for all of this.
pytestmark = [pytest.mark.long, pytest.mark.slow]

ROUNDS = number_of("CLUSTER_ROUNDS", sample=3, long=50)


def test_raced_revocations(whole: KafkaCluster, parts: Parts, producer: Producer) -> None:
    times = []
    for number in range(ROUNDS):
        topic = parts.new_topic()
        write(producer, topic, *(["earlier"] if number % 2 else []))
        credentials = parts.new_reader(topic)
        with hostiles(whole, credentials, topic) as clients:
            began = time.monotonic()
            parts.access.withdraw(topic, [credentials.username])
            times.append(time.monotonic() - began)
            write(producer, topic, "later", FILLER)
            expect_shut_out(clients, at={1, 2, 3})
        assert len(parts.topics.describe([topic])[topic].partitions[0].replicas) == NODES
        parts.topics.delete([topic])
    times.sort()
    print(f"revocation on three brokers: p50 {times[len(times) // 2]:.3f} s, max {times[-1]:.3f} s")


def kill(cluster: KafkaCluster, member: Member) -> Callable[[], None]:
    member.kill()
    return lambda: cluster.launch(member)


def pause(_cluster: KafkaCluster, member: Member) -> Callable[[], None]:
    member.pause()
    return member.go_on


def cut_off(cluster: KafkaCluster, member: Member) -> Callable[[], None]:
    cluster.cut_off(member)
    return lambda: cluster.mend(member)


FAULTS = (kill, pause, cut_off)


@pytest.mark.parametrize("of", [leader_of, follower_of, controller_of])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broker_fails_while_a_right_is_taken(
    whole: KafkaCluster,
    parts: Parts,
    producer: Producer,
    fault: Callable[[KafkaCluster, Member], Callable[[], None]],
    of: Callable[[KafkaCluster, str], Member],
) -> None:
    topic = parts.new_topic()
    write(producer, topic, "earlier")
    credentials = parts.new_reader(topic)
    broken = of(whole, topic)
    others = {1, 2, 3} - {broken.node.id}
    with hostiles(whole, credentials, topic) as clients:
        undo = fault(whole, broken)
        try:
            took = withdrawn(parts, topic, credentials.username)
            later = producer_of(asking(whole, others))
            write(later, topic, *(f"later-{number}" for number in range(20)), FILLER)
            expect_shut_out(clients, at=others)
        finally:
            undo()
        whole.await_all()
        expect_shut_out(clients, at={1, 2, 3})
        replenished(parts, whole, topic)
        write(producer, topic, "later-still")
        time.sleep(1)
        expect_shut_out(clients, at={1, 2, 3})
    print(f"{fault.__name__}, {of.__name__}: taken after {took:.1f} s")
    expect_read(parts, topic, 23)


def test_a_sender_loses_its_right_everywhere(whole: KafkaCluster, parts: Parts) -> None:
    """While a broker that may lead its transactions cannot be asked, nothing is said to be done."""
    topic = parts.new_topic("in.s")
    sender = parts.new_writer(topic)
    assert produce_one(parts.settings, sender, topic) is None
    paused = leader_of(whole, topic)
    paused.pause()
    try:
        withdrawn(parts, topic, sender.username)
        # Only once the controllers count the broker as dead.
        assert paused.node.id not in live_brokers(parts.connections)
    finally:
        paused.go_on()
    whole.await_all()
    # A producer may ask for its id first, and that is refused.
    assert produce_one(parts.settings, sender, topic) in {DENIED_TOPIC, DENIED_CLUSTER}
    ends = parts.topics.end_offsets([topic])[topic]
    assert ends == {0: 1}


def test_too_few_brokers_are_left(whole: KafkaCluster, parts: Parts) -> None:
    """Two of three are away: nothing is said to be done, and nothing can be written either."""
    topic = parts.new_topic()
    credentials = parts.new_reader(topic)
    kept = Random(topic).choice([*whole.members.values()])
    away = [member for member in whole.members.values() if member is not kept]
    for member in away:
        member.pause()
    try:
        with pytest.raises(Unavailable):
            parts.access.withdraw(topic, [credentials.username])
    finally:
        for member in away:
            member.go_on()
    whole.await_all()
    withdrawn(parts, topic, credentials.username)
