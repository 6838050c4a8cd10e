"""DeleteTopics by the topics' ids. The client library has names alone.

A broker that hangs may carry a request out much later. By then there may be another topic of the
same name. But an id is never used again.
"""

from __future__ import annotations

from collections.abc import Sequence

from secadmin.kafka.connect import REQUEST_TIMEOUT_S
from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import NO_TAGS, Reader, compact_length, int32, int64

_DELETE_TOPICS, _VERSION = 20, 6
_NO_NAME = compact_length(-1)

TopicId = tuple[int, int]
"""The two halves of a topic's id, the more significant one first, as signed integers."""


def delete_topics(connection: BrokerConnection, ids: Sequence[TopicId]) -> list[int]:
    """Delete the topics with these ids. Gives Kafka's code for each.

    Raises:
        OSError, ValueError: The broker did not answer, or its answer cannot be read.
    """
    topics = (_NO_NAME + int64(most) + int64(least) + NO_TAGS for most, least in ids)
    body = compact_length(len(ids)) + b"".join(topics)
    body += int32(int(REQUEST_TIMEOUT_S * 1000)) + NO_TAGS
    return codes_of(connection.request(_DELETE_TOPICS, _VERSION, body, flexible=True), ids)


def codes_of(answer: Reader, ids: Sequence[TopicId]) -> list[int]:
    """The code of each id in an answer. Raises ValueError if one is missing."""
    answer.int32()
    codes: dict[TopicId, int] = {}
    for _ in range(answer.compact_length()):
        answer.compact_string()
        topic = answer.int64(), answer.int64()
        codes[topic] = answer.int16()
        answer.compact_string()
        answer.tags()
    if missing := set(ids) - codes.keys():
        raise ValueError(f"the broker says nothing of {len(missing)} topics")
    return [codes[each] for each in ids]
