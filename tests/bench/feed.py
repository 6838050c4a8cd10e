"""A steady load, and the latency with which it arrives."""

from __future__ import annotations

import json
import threading
import time
from typing import Self

from confluent_kafka import Consumer, Producer

from tests.bench.world import tuple_now


class Feed:
    """Sends tuples at a rate until closed, to each topic in turn; a context manager."""

    def __init__(self, producer: Producer, topics: list[str], per_second: int) -> None:
        self._producer, self._topics, self._pause_s = producer, topics, 1 / per_second
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(10)

    def made(self, number: int) -> bytes:
        """The next tuple to send."""
        return tuple_now(number)

    def _run(self) -> None:
        number, due = 0, time.monotonic()
        while not self._stop.is_set():
            topic = self._topics[number % len(self._topics)]
            self._producer.produce(topic, self.made(number))
            self._producer.poll(0)
            number, due = number + 1, due + self._pause_s
            time.sleep(max(0.0, due - time.monotonic()))


class Reader:
    """Reads what comes, and passes over errors; a context manager that closes the consumer."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        first_arrival(self._consumer)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._consumer.poll(0.1)


def first_arrival(consumer: Consumer, timeout_s: float = 120.0) -> float:
    """Wait for the first record; the time of the steady clock at which it came, in seconds."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None and message.value():
            return time.monotonic()
    raise TimeoutError("nothing arrived")


def latencies_ms(consumer: Consumer, warm_s: float, measure_s: float) -> list[float]:
    """From sending to `poll`, of what arrives in `measure_s` after `warm_s`, in ms."""
    found: list[float] = []
    begin = time.monotonic() + warm_s
    while (now := time.monotonic()) < begin + measure_s:
        message = consumer.poll(0.1)
        if message is None or message.error() is not None or not message.value():
            continue
        if now >= begin:
            sent = json.loads(message.value() or b"")["sent"]
            found.append((time.monotonic_ns() - sent) / 1e6)
    return found
