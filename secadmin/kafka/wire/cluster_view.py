"""Metadata: what one broker knows of the cluster, its topics and their replicas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, int32, string

_METADATA, _VERSION = 3, 7
_UNKNOWN_TOPIC = 3
_EVERY_TOPIC = -1


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition: its leader, if it has one that is alive, the epoch of this, all its replicas."""

    leader: int | None
    epoch: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The brokers that are alive, by their ids, and partitions, by topic and number."""

    brokers: Mapping[int, BrokerAddress]
    partitions: Mapping[tuple[str, int], PartitionView]

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the partitions."""
        return frozenset(topic for topic, _ in self.partitions)


def cluster_view(connection: BrokerConnection, topics: Collection[str] | None) -> ClusterView:
    """What this broker knows of these topics, or of all. It leaves out those that are not there.

    Raises:
        OSError, ValueError: The broker did not answer, or answered with an error.
    """
    named = _EVERY_TOPIC if topics is None else len(topics)
    body = int32(named) + b"".join(map(string, topics or ())) + int8(False)
    return read_view(connection.request(_METADATA, _VERSION, body))


def read_view(answer: Reader) -> ClusterView:
    """The view in an answer. Raises ValueError if it is an error, or ends too soon."""
    answer.int32()
    brokers = {}
    for _ in range(answer.int32()):
        broker, host, port = answer.int32(), answer.string(), answer.int32()
        answer.string()
        brokers[broker] = BrokerAddress(host or "", port)
    answer.string(), answer.int32()
    partitions = {}
    for _ in range(answer.int32()):
        error, topic = answer.int16(), answer.string() or ""
        answer.int8()
        if error not in (0, _UNKNOWN_TOPIC):
            raise ValueError(f"the broker does not describe the topic {topic} (error {error})")
        for _ in range(answer.int32()):
            # The error says only that a replica, or the leader, is not alive.
            answer.int16()
            number, leader, epoch = answer.int32(), answer.int32(), answer.int32()
            replicas, _, _ = _numbers(answer), _numbers(answer), _numbers(answer)
            alive = leader if leader in brokers else None
            partitions[topic, number] = PartitionView(alive, epoch, replicas)
    return ClusterView(brokers, partitions)


def _numbers(answer: Reader) -> tuple[int, ...]:
    return tuple(answer.int32() for _ in range(answer.int32()))
