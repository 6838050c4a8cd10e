"""ListOffsets: the largest time of a record in each partition, as its leader knows it.

The client library remembers who leads a partition, and does not ask anew when that broker dies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import (
    NO_TAGS,
    Reader,
    compact_length,
    compact_string,
    int8,
    int32,
    int64,
)

_LIST_OFFSETS, _VERSION = 2, 7
_CONSUMER, _READ_UNCOMMITTED = -1, 0
_LARGEST_TIME = -3


def newest_times(
    connection: BrokerConnection, epochs: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    """The largest time in ms of each partition, or -1 if it is empty.

    `epochs` has the partitions that the broker leads, each with the epoch in which it does.

    Raises:
        OSError, ValueError: The broker did not answer, or does not lead one of them in its epoch.
    """
    by_topic: defaultdict[str, list[bytes]] = defaultdict(list)
    for (topic, number), epoch in epochs.items():
        asked = int32(number) + int32(epoch) + int64(_LARGEST_TIME) + NO_TAGS
        by_topic[topic].append(asked)
    body = int32(_CONSUMER) + int8(_READ_UNCOMMITTED) + compact_length(len(by_topic))
    for topic, partitions in by_topic.items():
        body += compact_string(topic) + compact_length(len(partitions))
        body += b"".join(partitions) + NO_TAGS
    body += NO_TAGS
    return read_times(connection.request(_LIST_OFFSETS, _VERSION, body, flexible=True))


def read_times(answer: Reader) -> dict[tuple[str, int], int]:
    """The times in an answer. Raises ValueError if it has an error, or ends too soon."""
    answer.int32()
    times = {}
    for _ in range(answer.compact_length()):
        topic = answer.compact_string() or ""
        for _ in range(answer.compact_length()):
            number, error, time = answer.int32(), answer.int16(), answer.int64()
            answer.int64(), answer.int32()
            answer.tags()
            if error:
                raise ValueError(f"the broker does not tell the times of {topic} (error {error})")
            times[topic, number] = time
        answer.tags()
    return times
