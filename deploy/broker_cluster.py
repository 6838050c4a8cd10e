"""The settings of several Kafka nodes that are one cluster.

A node is a broker, a controller, or both. A broker that is stopped waits until a controller lets it
go. So controllers in processes of their own, which are stopped later, let all brokers end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from deploy.broker_memory import RequestMemory
from deploy.broker_properties import (
    CONTROLLER_LISTENER,
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


class NodeRole(StrEnum):
    """What a node does for the cluster."""

    BROKER = "broker"
    """It keeps records, and serves clients."""
    CONTROLLER = "controller"
    """It decides with the other controllers who leads, and keeps users, topics and ACLs."""


@dataclass(frozen=True)
class Node:
    """A node of the cluster.

    Attributes:
        id: Its number, from 1.
        host: The name by which clients and the other nodes reach it; its certificate has it.
        ports: One for each listener. A node has the listeners of its roles.
        address: What the node binds.
        roles: What it does.
    """

    id: int
    host: str
    ports: Ports
    address: str = _ANY_ADDRESS
    roles: tuple[NodeRole, ...] = (NodeRole.BROKER, NodeRole.CONTROLLER)

    @property
    def listeners(self) -> dict[str, int]:
        """The ports of its listeners, by their names."""
        found: dict[str, int] = {}
        if NodeRole.BROKER in self.roles:
            found |= {USERS_LISTENER: self.ports.users, PLATFORM_LISTENER: self.ports.platform}
        if NodeRole.CONTROLLER in self.roles:
            found |= {CONTROLLER_LISTENER: self.ports.controller}
        return found


def cluster_properties(
    node: Node,
    nodes: Sequence[Node],
    files: NodeFiles,
    broker_password: str,
    memory: RequestMemory,
) -> dict[str, str]:
    """The settings of one of the nodes; they hold a password, so they belong in a private file.

    A topic has three replicas, or as many as there are brokers. One of three may be away: a record
    that was acknowledged is on two.

    Args:
        node: The node.
        nodes: All nodes, of which it is one.
        files: Data, key store and CA.
        broker_password: The password by which the nodes log in to each other.
        memory: What requests may take of the heap of a broker.
    """
    alone = broker_properties(node.ports, files, broker_password, memory)
    # A node that is alone finds its controller at its own address.
    del alone["controller.quorum.bootstrap.servers"]
    bound = node.listeners
    shown = dict(bound)
    if NodeRole.BROKER in node.roles:
        shown.pop(CONTROLLER_LISTENER, None)
    else:
        del alone["inter.broker.listener.name"]
    voters = [each for each in nodes if NodeRole.CONTROLLER in each.roles]
    brokers = [each for each in nodes if NodeRole.BROKER in each.roles]
    return {
        **alone,
        "process.roles": ",".join(node.roles),
        "node.id": str(node.id),
        "listeners": _addresses(node.address, bound),
        "advertised.listeners": _addresses(node.host, shown),
        "controller.quorum.voters": ",".join(
            f"{each.id}@{each.host}:{each.ports.controller}" for each in voters
        ),
        "controller.socket.timeout.ms": str(LONGEST_SILENCE_MS),
        **_replicated(min(len(brokers), MOST_REPLICAS)),
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
