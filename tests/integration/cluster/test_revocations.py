"""Revocations on three brokers: nothing later reaches a client of any of them, whatever fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

from catalog.errors import Unavailable
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.principals import Credentials
from tests.integration.cluster.hostile import PARKED, POLLING, Hostile
from tests.integration.cluster.kafka_cluster import NODES, PATIENCE_S, KafkaCluster, Member
from tests.integration.kafka.clients import DENIED_TOPIC, produce_one, reader
from tests.integration.kafka.conftest import Parts
from tests.lanes import number_of
from tests.waiting import wait_until

# A cluster's start alone takes longer than what the sample lane has for all of this.
pytestmark = [pytest.mark.long, pytest.mark.slow]

ROUNDS = number_of("CLUSTER_ROUNDS", sample=3, long=50)
# As many bytes as no fetch of a test waits for in vain.
FILLER = "later" * 20_000


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


def write(producer: Producer, topic: str, *values: str) -> None:
    """Write values until all replicas in sync have them; that may take a new leader."""
    failures: list[KafkaError] = []
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda e, _: failures.append(e) if e else None
        )
    assert producer.flush(60) == 0
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
    """A broker that does not lead the topic."""
    leader = leader_of(cluster, topic)
    return next(m for m in cluster.members.values() if m is not leader)


@contextmanager
def hostiles(
    cluster: KafkaCluster, credentials: Credentials, topic: str
) -> Iterator[list[Hostile]]:
    """At each broker one client whose fetch is parked, and one that polls."""
    clients = [
        Hostile(cluster, member, credentials, topic, limits)
        for member in cluster.members.values()
        for limits in (PARKED, POLLING)
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
        parts.replicas.replenish(live_brokers(parts.admins))
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


@pytest.mark.parametrize("of", [leader_of, follower_of])
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
            write(producer, topic, *(f"later-{number}" for number in range(20)), FILLER)
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


def test_a_broker_that_lost_its_controllers_serves_by_its_old_acls(
    whole: KafkaCluster, parts: Parts, producer: Producer
) -> None:
    """What the left out replica is for: it has new records, and does not know of the deletion."""
    topic = parts.new_topic()
    write(producer, topic, "earlier")
    credentials = parts.new_reader(topic)
    cut = follower_of(whole, topic)
    with hostiles(whole, credentials, topic) as clients:
        whole.cut_off(cut)
        try:
            others = {1, 2, 3} - {cut.node.id}
            wait_until(
                lambda: (
                    not any(
                        cut.node.id in whole.alive_for(whole.members[other]) for other in others
                    )
                ),
                "it counts as dead",
                PATIENCE_S,
            )
            proven = parts.acls.revoke_topics({topic: [credentials.username]})
            assert set(proven) == others
            write(producer, topic, "later")
            (at_the_cut,) = (
                each for each in clients if each.member is cut and each.limits is POLLING
            )
            wait_until(at_the_cut.leaks, "the cut-off broker serves it", PATIENCE_S)
            withdrawn(parts, topic, credentials.username)
            write(producer, topic, "afterwards")
            # It may even get its replica again: it does not hear of that before the deletion.
            every = {number: member.platform for number, member in whole.members.items()}
            parts.replicas.replenish(every)
            write(producer, topic, "afterwards, too")
            time.sleep(3)
            assert at_the_cut.served > time.monotonic() - 1, "it is still served what is older"
            assert b"afterwards" not in at_the_cut.records
        finally:
            whole.mend(cut)
        whole.await_all()
        wait_until(at_the_cut.is_refused, "it is refused", PATIENCE_S)
        assert b"afterwards" not in at_the_cut.records


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
        assert paused.node.id not in live_brokers(parts.admins)
    finally:
        paused.go_on()
    whole.await_all()
    assert produce_one(parts.settings, sender, topic) == DENIED_TOPIC
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
