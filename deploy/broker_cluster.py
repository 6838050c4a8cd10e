"""The settings of several Kafka nodes that are one cluster. Each is a broker and a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deploy.broker_memory import RequestMemory
from deploy.broker_properties import (
    PLATFORM_LISTENER,
    USERS_LISTENER,
    NodeFiles,
    Ports,
    broker_properties,
)

MOST_REPLICAS = 3
"""More nodes hold more topics, and not more copies of each."""
LONGEST_SILENCE_MS = 3_000
"""A broker that the active controller does not answer for so long asks anew which one it is.

It is longer than the controllers take to elect another one, and shorter than the platform waits for
an answer. While a broker waits for a controller that hangs, no change gets through it.
"""
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the node's own network decides who reaches it


@dataclass(frozen=True)
class Node:
    """A node of the cluster.

    Attributes:
        id: Its number, from 1.
        host: The name by which clients and the other nodes reach it; its certificate has it.
        ports: One for each listener.
        address: What the node binds.
    """

    id: int
    host: str
    ports: Ports
    address: str = _ANY_ADDRESS


def cluster_properties(
    node: Node,
    nodes: Sequence[Node],
    files: NodeFiles,
    broker_password: str,
    memory: RequestMemory,
) -> dict[str, str]:
    """The settings of one of the nodes; they hold a password, so they belong in a private file.

    A topic has three replicas, or as many as there are nodes. One of three may be away: a record
    that was acknowledged is on two.

    Args:
        node: The node.
        nodes: All nodes, of which it is one.
        files: Data, key store and CA.
        broker_password: The password by which the nodes log in to each other.
        memory: What requests may take of the heap.
    """
    alone = broker_properties(node.ports, files, broker_password, memory)
    # A node that is alone finds its controller at its own address.
    del alone["controller.quorum.bootstrap.servers"]
    ports = {USERS_LISTENER: node.ports.users, PLATFORM_LISTENER: node.ports.platform}
    bound = {**ports, "CONTROLLER": node.ports.controller}
    return {
        **alone,
        "node.id": str(node.id),
        "listeners": _addresses(node.address, bound),
        "advertised.listeners": _addresses(node.host, ports),
        "controller.quorum.voters": ",".join(
            f"{each.id}@{each.host}:{each.ports.controller}" for each in nodes
        ),
        "controller.socket.timeout.ms": str(LONGEST_SILENCE_MS),
        **_replicated(min(len(nodes), MOST_REPLICAS)),
    }


def _addresses(host: str, ports: Mapping[str, int]) -> str:
    return ",".join(f"{listener}://{host}:{port}" for listener, port in ports.items())


def _replicated(replicas: int) -> dict[str, str]:
    least = max(1, replicas - 1)
    topics = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    in_sync = ("transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr")
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(least),
        **{f"{topic}.replication.factor": str(replicas) for topic in topics},
        **{name: str(least) for name in in_sync},
        # A node that lacks acknowledged records must never lead.
        "unclean.leader.election.enable": "false",
    }
