"""Data that flow all the time: numbered records, each with the moment at which it was written."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from threading import Event, Lock, Thread
from types import TracebackType

from confluent_kafka import KafkaError, Message

from catalog.settings import KafkaSettings
from tests.integration.kafka.clients import secadmin_producer
from tests.integration.service.revocations.waiting import wait_until

FILLING = 30_000
"""Bytes of a filler, which releases a parked fetch that waits for `RELEASED_BY` bytes."""
RELEASED_BY = 20_000

_PAUSE_S = 0.03
# Raw clients look for it in whole batches, with their checksums and times: those are to contain it
# never, and three bytes of them look like `<5>` in one of some thirty runs.
_NUMBER = re.compile(rb"<number (\d+)>")


def numbers_in(data: bytes) -> list[int]:
    """The numbers of the records in these bytes, in order; half a record counts, too."""
    return [int(found) for found in _NUMBER.findall(data)]


class Flow:
    """Writes the next number to each topic once, over and over, in a thread of its own.

    `started` holds, by topic and number, when writing it began (monotonic seconds).
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.started: dict[str, list[float]] = {}
        self._acknowledged: dict[str, int] = defaultdict(int)
        self._failures: list[str] = []
        self._producer = secadmin_producer(settings)
        self._lock = Lock()
        self._stop = Event()
        self._thread = Thread(target=self._work, name="flow", daemon=True)

    def __enter__(self) -> Flow:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End with a filler in each topic, and all of it acknowledged."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join()
        for topic in self.started:
            self._write(topic, b"f" * FILLING)
        assert self._producer.flush(60) == 0
        assert self._failures == []

    def open(self, topic: str) -> None:
        """From now on write to this topic, too."""
        with self._lock:
            self.started.setdefault(topic, [])

    def fill(self, topic: str) -> int:
        """Write a record of `FILLING` bytes; its number, once it is acknowledged."""
        with self._lock:
            number = self._write(topic, b"f" * FILLING)
        wait_until(lambda: self._acknowledged[topic] > number, "the filler")
        return number

    def _work(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            with self._lock:
                for topic in self.started:
                    self._write(topic, b"")
            self._producer.poll(0)

    def _write(self, topic: str, filling: bytes) -> int:
        number = len(self.started[topic])
        self.started[topic].append(time.monotonic())
        self._producer.produce(
            topic, b"<number %d>" % number + filling, partition=0, on_delivery=self._delivered
        )
        return number

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(str(error))
        self._acknowledged[str(message.topic())] += 1
