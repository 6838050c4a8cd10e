"""The cluster's live brokers."""

from __future__ import annotations

from secadmin.kafka.connect import REQUEST_TIMEOUT_S, AdminClients, finished
from secadmin.kafka.wire.connection import BrokerAddress


def live_brokers(admins: AdminClients) -> dict[int, BrokerAddress]:
    """The address of every live broker, by the broker's id. Raises Unavailable."""
    future = admins.reads.describe_cluster(request_timeout=REQUEST_TIMEOUT_S)
    cluster = finished(future, "reach Kafka")
    return {node.id: BrokerAddress(node.host, node.port) for node in cluster.nodes}
