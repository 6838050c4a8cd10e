"""The cluster's live brokers."""

from __future__ import annotations

from secadmin.kafka.wire.cluster_view import cluster_view
from secadmin.kafka.wire.connection import BrokerAddress
from secadmin.kafka.wire.connections import BrokerConnections


def live_brokers(connections: BrokerConnections) -> dict[int, BrokerAddress]:
    """The address of every broker that counts as alive, by its id. Raises Unavailable."""
    found = connections.ask("reach Kafka", lambda broker: cluster_view(broker, ())).brokers
    connections.learn(found.values())
    return dict(found)
