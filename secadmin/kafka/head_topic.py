"""An anchor in Kafka: a topic that keeps the audit log's heads for ever.

An account of its own writes the topic, and it has no other rights. But the super users of the
cluster, which include SecAdmin's account, can delete the topic.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from catalog.errors import Unavailable
from catalog.settings import KafkaSettings
from catalog.topics import HEAD_TOPIC
from secadmin.kafka.acl import write_acls
from secadmin.kafka.acls import Acls
from secadmin.kafka.connect import REQUEST_TIMEOUT_S, head_consumer, head_producer
from secadmin.kafka.principals import Principals
from secadmin.kafka.topics import FOREVER_MS, Topics, TopicSpec

READ_TIMEOUT_S = 20.0
"""The longest time for reading all heads, in seconds."""
_AT_A_TIME = 1_000
_PARTITION = 0


class HeadTopic:
    """Keeps lines in the topic. One thread writes; any number of threads may read."""

    place = f"the topic {HEAD_TOPIC}"

    def __init__(
        self, settings: KafkaSettings, topics: Topics, principals: Principals, acls: Acls
    ) -> None:
        """Send nothing yet, because Kafka may be unreachable."""
        self._settings = settings
        self._topics, self._principals, self._acls = topics, principals, acls
        self._producer: Producer | None = None

    def append(self, line: bytes) -> None:
        """Write the line, and wait until all replicas have it. Raises Unavailable."""
        if self._producer is None:
            self._prepare()
            self._producer = head_producer(self._settings)
        try:
            self._write(self._producer, line)
        except Unavailable:
            # Topic, account or right may be gone, so the next try makes them again.
            self._producer = None
            raise

    def read(self, most: int) -> Iterator[bytes]:
        """The newest lines, oldest first.

        Raises Unavailable if they cannot be read in time, or if the first heads are gone.
        """
        deadline = time.monotonic() + READ_TIMEOUT_S
        with _consumer(self._settings) as consumer:
            first, end = _offsets(consumer)
            if first > 0:
                raise Unavailable(f"the heads before offset {first} were deleted")
            consumer.assign([TopicPartition(HEAD_TOPIC, _PARTITION, max(first, end - most))])
            while _position(consumer) < end and first < end:
                if time.monotonic() > deadline:
                    raise Unavailable("Kafka takes too long to read them")
                for message in consumer.consume(_AT_A_TIME, timeout=0.5):
                    if message.error() is None:
                        yield message.value() or b""

    def close(self) -> None:
        """Close the connection. A line without an acknowledgement is given up."""
        self._producer = None

    def _prepare(self) -> None:
        account = self._settings.audit
        self._principals.ensure(account)
        self._topics.create([TopicSpec(HEAD_TOPIC, retention_ms=FOREVER_MS)])
        self._topics.keep_forever(HEAD_TOPIC)
        self._acls.grant(write_acls(account.username, HEAD_TOPIC))

    @staticmethod
    def _write(producer: Producer, line: bytes) -> None:
        outcome: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            outcome.append(error)

        try:
            producer.produce(HEAD_TOPIC, line, partition=_PARTITION, on_delivery=delivered)
        except KafkaException as error:
            raise Unavailable(f"Kafka says {error}") from None
        producer.flush(REQUEST_TIMEOUT_S + 1)
        if not outcome:
            raise Unavailable("Kafka did not answer")
        if outcome[0] is not None:
            raise Unavailable(f"Kafka says {outcome[0].str()}")


@contextmanager
def _consumer(settings: KafkaSettings) -> Iterator[Consumer]:
    consumer = head_consumer(settings)
    try:
        yield consumer
    except KafkaException as error:
        raise Unavailable(f"Kafka says {error.args[0].str()}") from None
    finally:
        consumer.close()


def _offsets(consumer: Consumer) -> tuple[int, int]:
    """The first offset of the topic, and the offset that its next record will get."""
    place = TopicPartition(HEAD_TOPIC, _PARTITION)
    first, end = consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)
    return first, end


def _position(consumer: Consumer) -> int:
    [place] = consumer.position([TopicPartition(HEAD_TOPIC, _PARTITION)])
    return -1 if place.offset == OFFSET_INVALID else int(place.offset)
