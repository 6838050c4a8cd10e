"""Writing fence records: no key, no value, the header `fence`."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Event, Thread
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from catalog.settings import KafkaSettings
from catalog.topics import FENCE_HEADER
from secadmin.kafka.connect import fence_producer, finished

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
        # One thread serves everybody's acknowledgements: no caller waits for another's poll.
        self._thread = Thread(target=self._serve, name="fence-writer", daemon=True)
        self._thread.start()

    def write(self, stamps: Mapping[Partition, int]) -> dict[Partition, int]:
        """Write one record to each partition and wait until all replicas have it.

        Args:
            stamps: The records' timestamps in ms since 1970, by partition.

        Returns:
            The records' offsets, by partition.

        Raises:
            Unavailable: A record was not acknowledged.
        """
        futures = {
            partition: self._produce(partition, stamp) for partition, stamp in stamps.items()
        }
        return {
            partition: finished(future, f"write the fence to the topic {partition.topic}")
            for partition, future in futures.items()
        }

    def close(self) -> None:
        """Stop serving; what was not acknowledged is given up."""
        self._closed.set()
        self._thread.join()

    def _produce(self, partition: Partition, stamp: int) -> Future[int]:
        future: Future[int] = Future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                future.set_exception(KafkaException(error))
            else:
                future.set_result(message.offset() or 0)

        self._producer.produce(
            partition.topic,
            partition=partition.number,
            timestamp=stamp,
            headers=[(FENCE_HEADER, b"")],
            on_delivery=delivered,
        )
        return future

    def _serve(self) -> None:
        while not self._closed.is_set():
            self._producer.poll(_WAKE_S)
