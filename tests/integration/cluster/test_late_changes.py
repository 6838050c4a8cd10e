"""A node that hangs has a grant, and carries it out when the right is long taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Producer

from catalog.errors import Unavailable
from secadmin.kafka.acl import Operation, TopicAcl, bans, read_acls
from secadmin.kafka.acls import Acls
from secadmin.kafka.principals import new_principal_name
from secadmin.kafka.wire.cluster_view import cluster_view
from secadmin.kafka.wire.connections import BrokerConnections, Unanswered
from tests.integration.cluster.hostile import POLLING, Hostile
from tests.integration.cluster.kafka_cluster import NODES, PATIENCE_S, KafkaCluster, Member
from tests.integration.cluster.steps import (
    controller_of,
    expect_shut_out,
    hostiles,
    leader_of,
    write,
)
from tests.integration.kafka.conftest import Parts
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.slow]


def broker_of(cluster: KafkaCluster, topic: str) -> Member:
    """A node whose controller is not the active one, and that does not lead the topic."""
    others = (controller_of(cluster, topic), leader_of(cluster, topic))
    return next(member for member in cluster.members.values() if member not in others)


@pytest.mark.parametrize("of", [broker_of, controller_of])
def test_a_grant_that_comes_late_lets_nobody_in(
    whole: KafkaCluster,
    parts: Parts,
    producer: Producer,
    of: Callable[[KafkaCluster, str], Member],
) -> None:
    topic = parts.new_topic()
    write(producer, topic, "earlier")
    credentials = parts.principals.create(new_principal_name("output"))
    principal = credentials.username
    hanging = of(whole, topic)
    every = {topic: [principal]}
    connections = _asked_first(whole, hanging, of is broker_of)
    acls = Acls(parts.admins, connections, NODES)
    hanging.pause()
    try:
        _grant(acls, principal, topic)
        with hostiles(whole, credentials, topic, but=hanging.node.id) as clients:
            _until_done(lambda: parts.access.withdraw_locked(every, every))
            write(producer, topic, "later")
            expect_shut_out(clients, at={1, 2, 3} - {hanging.node.id})
            hanging.go_on()
            whole.await_all()
            clients += [Hostile(whole, hanging, credentials, topic, POLLING)]
            clients[-1].start()
            if of is broker_of:
                own = TopicAcl(principal, topic, Operation.READ)
                wait_until(lambda: own in acls.list_all(), "it comes late", PATIENCE_S)
            write(producer, topic, "later, too")
            time.sleep(3)
            expect_shut_out(clients, at={1, 2, 3})
            if of is broker_of:
                # Without the ban they would read it all.
                acls.revoke(bans(principal, topic))
                wait_until(lambda: any(each.leaks() for each in clients), "a leak", PATIENCE_S)
    finally:
        hanging.go_on()
        connections.close()
    whole.await_all()


def _asked_first(cluster: KafkaCluster, hanging: Member, is_asked: bool) -> BrokerConnections:
    """Connections that ask the node first if it `is_asked`, and otherwise another one first."""
    connections = BrokerConnections(cluster.settings)
    for member in cluster.members.values():
        if (member is hanging) is is_asked:
            first = member.platform
            break
    with connections.lent(first) as connection:
        cluster_view(connection, ())
    connections._note(first)
    return connections


def _grant(acls: Acls, principal: str, topic: str) -> None:
    """Kafka does it, and the node that hangs has the request, too."""
    is_settled = True

    def grant() -> None:
        nonlocal is_settled
        try:
            is_settled = acls.grant(read_acls(principal, topic)) and is_settled
        except Unanswered:
            is_settled = False
            raise

    _until_done(grant)
    assert not is_settled


def _until_done(attempt: Callable[[], object]) -> None:
    def is_done() -> bool:
        with suppress(Unavailable):
            attempt()
            return True
        return False

    wait_until(is_done, "it is done", PATIENCE_S)
