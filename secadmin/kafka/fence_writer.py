"""Writes fence records. A fence record has no key, no value, and the header `fence`."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Event, Thread
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from catalog.errors import Unavailable
from catalog.settings import KafkaSettings
from catalog.topics import FENCE_HEADER
from secadmin.kafka.connect import fence_producer, finished, unavailable

_WAKE_S = 0.5


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int


class FenceWriter:
    """Writes fence records with one long-lived producer, for any number of threads."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._producer: Producer = fence_producer(settings)
        self._closed = Event()
        # One thread handles all acknowledgements, so no caller waits for the poll of another.
        self._thread = Thread(target=self._serve, name="fence-writer", daemon=True)
        self._thread.start()

    def write(self, stamps: Mapping[Partition, int]) -> dict[Partition, int]:
        """Write one record to each partition and wait until all replicas have it.

        Args:
            stamps: The records' timestamps in ms since 1970, by partition.

        Returns:
            The records' offsets, by partition.

        Raises:
            Unavailable: Kafka did not accept a record, or did not acknowledge it.
        """
        futures = {
            partition: self._produce(partition, stamp) for partition, stamp in stamps.items()
        }
        return {
            partition: finished(future, _purpose(partition))
            for partition, future in futures.items()
        }

    def close(self) -> None:
        """Stop the thread. Records without an acknowledgement are given up."""
        self._closed.set()
        self._thread.join()

    def _produce(self, partition: Partition, stamp: int) -> Future[int]:
        future: Future[int] = Future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                future.set_exception(KafkaException(error))
            else:
                future.set_result(message.offset() or 0)

        try:
            self._producer.produce(
                partition.topic,
                partition=partition.number,
                timestamp=stamp,
                headers=[(FENCE_HEADER, b"")],
                on_delivery=delivered,
            )
        except BufferError:
            raise Unavailable(
                f"cannot {_purpose(partition)}: too many records wait to be sent"
            ) from None
        except KafkaException as error:
            # The producer remembers for some seconds that a topic did not exist.
            raise unavailable(error, _purpose(partition)) from None
        return future

    def _serve(self) -> None:
        while not self._closed.is_set():
            self._producer.poll(_WAKE_S)


def _purpose(partition: Partition) -> str:
    return f"write the fence to the topic {partition.topic}"
