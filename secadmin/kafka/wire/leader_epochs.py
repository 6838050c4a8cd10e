"""OffsetForLeaderEpoch: whether a broker has begun to lead a partition in an epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int32, string

_OFFSET_FOR_LEADER_EPOCH, _VERSION = 23, 3
_CONSUMER = -1


def leads(connection: BrokerConnection, epochs: Mapping[tuple[str, int], int]) -> bool:
    """Say whether the broker leads all these partitions, each in its epoch and in no later one.

    Its view of the cluster may be a little newer than what it does with its replicas. This asks
    for what it does.

    Raises:
        OSError, ValueError: The broker did not answer, or its answer cannot be read.
    """
    by_topic: defaultdict[str, list[bytes]] = defaultdict(list)
    for (topic, number), epoch in epochs.items():
        by_topic[topic].append(int32(number) + int32(epoch) + int32(epoch))
    body = int32(_CONSUMER) + int32(len(by_topic))
    for topic, partitions in by_topic.items():
        body += string(topic) + int32(len(partitions)) + b"".join(partitions)
    return all_led(connection.request(_OFFSET_FOR_LEADER_EPOCH, _VERSION, body))


def all_led(answer: Reader) -> bool:
    """Whether the answer has no error of a partition. Raises ValueError if it ends too soon."""
    answer.int32()
    errors = []
    for _ in range(answer.int32()):
        answer.string()
        for _ in range(answer.int32()):
            errors.append(answer.int16())
            answer.int32(), answer.int32(), answer.int64()
    return bool(errors) and not any(errors)
