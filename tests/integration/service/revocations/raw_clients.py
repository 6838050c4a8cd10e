"""Hostile clients that speak the protocol themselves."""

from __future__ import annotations

import time

from catalog.errors import Unavailable
from secadmin.kafka.wire.connection import BrokerConnection
from tests.integration.service.revocations.numbered_flow import RELEASED_BY
from tests.integration.service.revocations.raw_fetch import (
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    Fetched,
    FetchLimits,
    connect,
    read_fetch,
    send_fetch,
)
from tests.integration.service.revocations.watching_client import Subscription, WatchingClient

_AGAIN_S = 0.02
_LOOK_S = 0.2
# A fetch that is refused is answered sooner; one without an answer for so long is parked.
_PARKED_S = 0.5
LONGEST_MS = 60_000
PARKED = FetchLimits(LONGEST_MS, RELEASED_BY)
HUGE = FetchLimits(LONGEST_MS, 2**31 - 1)
POLLING = FetchLimits(100, 1)


class Fetcher(WatchingClient):
    """Sends one fetch after the other, also when it is refused.

    `offset` is where it begins; beyond the log's end it tries until the log is as long.
    """

    def __init__(self, subscription: Subscription, limits: FetchLimits, offset: int) -> None:
        super().__init__(subscription)
        self._limits = limits
        self._offset = offset
        # When the fetch that is under way was sent.
        self._sent: float | None = None

    def is_ready(self, since: float) -> bool:
        sent = self._sent
        parked = sent is not None and time.monotonic() > sent + _PARKED_S
        return parked or (sent is not None and sent > since) or self.has_read(since)

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                connection = self.connected()
            except Unavailable:
                self.refused(time.monotonic())
                continue
            except TimeoutError:
                # The machine is busy, and so is the broker. That is no refusal.
                continue
            try:
                self.read(connection)
            finally:
                self._sent = None
                connection.close()

    def connected(self) -> BrokerConnection:
        """A connection as the subscription's principal."""
        own = self.subscription
        return connect(own.settings, own.credentials, own.folder)

    def read(self, connection: BrokerConnection) -> None:
        """Fetch over and over on one connection."""
        while not self.stopped.is_set():
            self.fetch(connection)

    def fetch(self, connection: BrokerConnection) -> None:
        """One fetch, waited for as long as it takes."""
        topic, self._sent = self.subscription.topic, time.monotonic()
        send_fetch(connection, topic, self._offset, self._limits)
        while (answer := connection.receive(_LOOK_S)) is None:
            if self.stopped.is_set():
                return
        self._take(read_fetch(answer, self._offset))

    def refused(self, at: float) -> None:
        super().refused(at)
        self._sent = None
        self.stopped.wait(_AGAIN_S)

    def _take(self, fetched: Fetched) -> None:
        if fetched.error == TOPIC_AUTHORIZATION_FAILED:
            assert self._sent is not None
            self.refused(self._sent)
        elif fetched.error == OFFSET_OUT_OF_RANGE:
            self.stopped.wait(_AGAIN_S)
        else:
            assert not fetched.error, f"Kafka's error {fetched.error}"
            self.got(self.subscription.topic, fetched.records)
            self._offset = fetched.next_offset


class SecondConnection(Fetcher):
    """Has logged in long before, and fetches for the first time when the call is under way."""

    def __init__(self, subscription: Subscription, offset: int) -> None:
        super().__init__(subscription, POLLING, offset)
        self._waits = False

    def is_ready(self, since: float) -> bool:
        return self._waits

    def read(self, connection: BrokerConnection) -> None:
        while not self.stopped.is_set():
            self._waits = True
            if self.call.wait(_LOOK_S):
                self._waits = False
                self._until_refused(connection)

    def _until_refused(self, connection: BrokerConnection) -> None:
        while self.call.is_set() and not self.stopped.is_set():
            self.fetch(connection)


class LoggingInAgain(Fetcher):
    """While the call is under way and after, logs in anew for every fetch."""

    def __init__(self, subscription: Subscription, offset: int) -> None:
        super().__init__(subscription, POLLING, offset)

    def is_ready(self, since: float) -> bool:
        return not self.call.is_set()

    def connected(self) -> BrokerConnection:
        while not self.call.wait(_LOOK_S) and not self.stopped.is_set():
            pass
        return super().connected()

    def read(self, connection: BrokerConnection) -> None:
        if self.call.is_set():
            self.fetch(connection)
