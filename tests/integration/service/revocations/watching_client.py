"""What every client of a subscription is to the test, honest or hostile."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from catalog.settings import KafkaSettings
from secadmin.kafka.principals import Credentials
from tests.integration.service.revocations.ledger import Reception
from tests.integration.service.revocations.numbered_flow import numbers_in

_ENDING_S = 30.0


@dataclass(frozen=True, slots=True)
class Subscription:
    """Where the clients of one principal connect, and what they read. `folder` is their own."""

    settings: KafkaSettings
    credentials: Credentials
    topic: str
    output: str
    folder: Path


class WatchingClient(ABC):
    """Reads in a thread of its own, and keeps what it got and when it was refused."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.received: list[Reception] = []
        self._last_at: dict[str, float] = {}
        self._refused_at = 0.0
        self.failure: BaseException | None = None
        self.call = Event()
        self.stopped = Event()
        self._thread = Thread(target=self._work, name=type(self).__name__, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Begin to end; `join` waits for it."""
        self.stopped.set()

    def join(self) -> None:
        """Wait for the end, but not for a library that never returns from closing a consumer.

        librdkafka does so at times when the rights of the one that it closes have just gone.
        """
        self._thread.join(_ENDING_S)

    @abstractmethod
    def is_ready(self, since: float) -> bool:
        """Whether it reads, or waits for what is to come, by a request of after `since`."""

    def is_shut_out(self, began: float, returned: float) -> bool:
        """Whether what it asked for after the call that began and returned then was refused."""
        return self._refused_at > returned

    @abstractmethod
    def run(self) -> None:
        """Read until `stopped`."""

    def call_begins(self) -> None:
        """A call that takes the topic is about to begin. Some clients wait for just that."""
        self.call.set()

    def call_is_over(self) -> None:
        """It has returned, and this client was refused."""
        self.call.clear()

    def got(self, topic: str, data: bytes) -> None:
        """Keep the numbers in the data."""
        now = time.monotonic()
        self.received += [Reception(topic, number, now) for number in numbers_in(data)]
        self._last_at[topic] = now

    def has_read(self, since: float) -> bool:
        """Whether it got something of its topic after `since`."""
        return self._last_at.get(self.subscription.topic, 0.0) > since

    def refused(self, at: float) -> None:
        """A request was refused: of a raw client one that it sent at `at`."""
        self._refused_at = at

    def _work(self) -> None:
        try:
            self.run()
        except BaseException as failure:
            self.failure = failure
