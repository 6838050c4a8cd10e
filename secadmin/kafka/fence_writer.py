"""Writes fence records. A fence record has no key, no value, and the header `fence`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Lock, Thread
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from catalog.errors import Unavailable
from catalog.settings import KafkaSettings
from catalog.topics import FENCE_HEADER
from secadmin.kafka.connect import fence_producer, finished, unavailable
from secadmin.kafka.wire.connection import BrokerAddress

_WAKE_S = 0.5


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int


class FenceWriter:
    """Writes fence records with a long-lived producer, for any number of threads.

    A producer asks any broker that it knows who leads a topic. A broker that has lost its
    controllers does not know of new topics, and says that there are none. So a producer that knows
    a broker which may not be asked is replaced, and so is one that has failed.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._lock = Lock()
        # It connects meanwhile, so the first fence does not wait for that.
        self._line: _Line | None = _Line(settings)

    def write(
        self, stamps: Mapping[Partition, int], brokers: Collection[BrokerAddress]
    ) -> dict[Partition, int]:
        """Write one record to each partition and wait until all replicas have it.

        Args:
            stamps: The records' timestamps in ms since 1970, by partition.
            brokers: Who may be asked for the partitions' leaders, which are among them.

        Returns:
            The records' offsets, by partition.

        Raises:
            Unavailable: Kafka did not accept a record, or did not acknowledge it.
        """
        with self._lent(frozenset(brokers)) as line:
            try:
                return line.write(stamps)
            except _TooMany:
                raise
            except Unavailable:
                with self._lock:
                    self._leave(line)
                raise

    def close(self) -> None:
        """Stop the thread. Records without an acknowledgement are given up."""
        if self._line is not None:
            self._line.close()

    @contextmanager
    def _lent(self, brokers: frozenset[BrokerAddress]) -> Iterator[_Line]:
        with self._lock:
            line = self._line
            if line is None or not line.known <= brokers:
                self._leave(line)
                at = ",".join(sorted(f"{each.host}:{each.port}" for each in brokers))
                self._line = line = _Line(replace(self._settings, bootstrap=at))
            # What it hears from one of them makes it know them all.
            line.known |= brokers
            line.users += 1
        try:
            yield line
        finally:
            with self._lock:
                line.users -= 1

    def _leave(self, line: _Line | None) -> None:
        if line is not None and line is self._line:
            line.left.set()
            self._line = None


class _TooMany(Unavailable):
    """The producer has no room for a record."""


class _Line:
    """A producer, the brokers that it knows, and how many threads write with it.

    When it is `left`, its thread ends with the last of them.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.known: frozenset[BrokerAddress] = frozenset()
        self.users = 0
        self.left = Event()
        self._producer: Producer = fence_producer(settings)
        self._closed = Event()
        # One thread handles all acknowledgements, so no caller waits for the poll of another.
        self._thread = Thread(target=self._serve, name="fence-writer", daemon=True)
        self._thread.start()

    def write(self, stamps: Mapping[Partition, int]) -> dict[Partition, int]:
        """As `FenceWriter.write`."""
        futures = {
            partition: self._produce(partition, stamp) for partition, stamp in stamps.items()
        }
        return {
            partition: finished(future, _purpose(partition))
            for partition, future in futures.items()
        }

    def close(self) -> None:
        """Stop the thread now."""
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
            raise _TooMany(
                f"cannot {_purpose(partition)}: too many records wait to be sent"
            ) from None
        except KafkaException as error:
            # The producer remembers for some seconds that a topic did not exist.
            raise unavailable(error, _purpose(partition)) from None
        return future

    def _serve(self) -> None:
        while not self._closed.is_set() and (self.users or not self.left.is_set()):
            self._producer.poll(_WAKE_S)


def _purpose(partition: Partition) -> str:
    return f"write the fence to the topic {partition.topic}"
