"""AlterPartitionReassignments: says which brokers have the replicas of partitions.

The client library has no such call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from secadmin.kafka.connect import REQUEST_TIMEOUT_S
from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import NO_TAGS, Reader, compact_length, compact_string, int32

_ALTER_PARTITION_REASSIGNMENTS, _VERSION = 45, 0


def reassign(
    connection: BrokerConnection, replicas: Mapping[tuple[str, int], Sequence[int]]
) -> None:
    """Let each partition, by topic and number, have its replicas on these brokers alone.

    A broker that is left out loses its replica at once. One that is new gets it in the background.

    Raises:
        OSError, ValueError: The broker did not answer, or answered with an error.
    """
    by_topic: defaultdict[str, list[bytes]] = defaultdict(list)
    for (topic, number), brokers in replicas.items():
        places = compact_length(len(brokers)) + b"".join(map(int32, brokers))
        by_topic[topic].append(int32(number) + places + NO_TAGS)
    body = int32(int(REQUEST_TIMEOUT_S * 1000)) + compact_length(len(by_topic))
    for topic, partitions in by_topic.items():
        body += compact_string(topic) + compact_length(len(partitions))
        body += b"".join(partitions) + NO_TAGS
    body += NO_TAGS
    request = (_ALTER_PARTITION_REASSIGNMENTS, _VERSION, body)
    check_reassigned(connection.request(*request, flexible=True))


def check_reassigned(answer: Reader) -> None:
    """Raise ValueError if the answer tells an error, of the whole request or of a partition."""
    answer.int32()
    error, message = answer.int16(), answer.compact_string()
    if error:
        raise ValueError(f"Kafka does not move replicas ({message or error})")
    for _ in range(answer.compact_length()):
        topic = answer.compact_string()
        for _ in range(answer.compact_length()):
            number, error, message = answer.int32(), answer.int16(), answer.compact_string()
            answer.tags()
            if error:
                what = f"partition {number} of {topic}"
                raise ValueError(f"Kafka does not move replicas of {what} ({message or error})")
        answer.tags()
