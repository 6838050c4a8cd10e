"""Open connections to every broker, kept because a login takes longer than a whole revocation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from catalog.settings import KafkaSettings
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection

_KEPT_PER_BROKER = 36


class BrokerConnections:
    """Lends connections. Each has one borrower at a time, and is kept for the next one."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._idle: dict[BrokerAddress, list[BrokerConnection]] = defaultdict(list)
        self._lock = Lock()

    @contextmanager
    def lent(self, address: BrokerAddress) -> Iterator[BrokerConnection]:
        """A connection to the broker. It is closed if the block fails.

        Raises:
            OSError, ValueError: The broker cannot be reached (see `network_errors`).
            Unavailable: The broker refuses SecAdmin's account.
        """
        connection = self._take(address) or BrokerConnection(address, self._settings)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._give_back(address, connection)

    def close(self) -> None:
        """Close all connections that nobody has borrowed."""
        with self._lock:
            for connections in self._idle.values():
                while connections:
                    connections.pop().close()

    def _take(self, address: BrokerAddress) -> BrokerConnection | None:
        while True:
            with self._lock:
                if not self._idle[address]:
                    return None
                connection = self._idle[address].pop()
            if connection.is_usable():
                return connection
            connection.close()

    def _give_back(self, address: BrokerAddress, connection: BrokerConnection) -> None:
        with self._lock:
            if len(self._idle[address]) < _KEPT_PER_BROKER:
                self._idle[address].append(connection)
                return
        connection.close()
