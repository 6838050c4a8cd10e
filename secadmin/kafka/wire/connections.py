"""Open connections to every broker, kept because a login takes longer than a whole revocation.

What any broker can do is asked of the one that answered last. If it is silent, another one is
asked: a broker that hangs holds up nothing but one request. But it may still have the request, and
carry it out whenever it goes on. So an answer says whether this may be.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from catalog.errors import InvalidInput, Unavailable
from catalog.settings import KafkaSettings
from secadmin.kafka.connect import REQUEST_TIMEOUT_S
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection, network_errors

_KEPT_PER_BROKER = 36
# One that is silent takes so long; after two of them the caller has waited for long enough.
_PATIENCE_S = 1.5 * REQUEST_TIMEOUT_S
# A broker hands changes on to the active controller. If that is silent for
# `controller.socket.timeout.ms`, three seconds at least, the broker sends the change once more.
_SENT_ONCE_S = 2.5
_T = TypeVar("_T")


class Unanswered(Unavailable):
    """Kafka has got a request and has not answered it. It may carry it out, and whenever."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[_T]):
    """An answer; `settled` says that Kafka has no copy of the request that it may carry out."""

    value: _T
    settled: bool


class BrokerConnections:
    """Lends connections. Each has one borrower at a time, and is kept for the next one."""

    def __init__(self, settings: KafkaSettings) -> None:
        """Connect to nothing yet. Raises InvalidInput if the settings name no brokers."""
        self._settings = settings
        self._idle: dict[BrokerAddress, list[BrokerConnection]] = defaultdict(list)
        self._lock = Lock()
        # The one that answered last comes first.
        self._known = [_address(each) for each in settings.bootstrap.split(",")]

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

    def ask(self, purpose: str, question: Callable[[BrokerConnection], _T]) -> _T:
        """The answer of a broker to what any broker can answer, or do.

        Args:
            purpose: The aim of the question ("create the ACLs"), for an error.
            question: Asks. It raises OSError or ValueError if it has no answer.

        Raises:
            Unanswered: None answers, and one that has got the question may do it later.
            Unavailable: None answers.
        """
        return self.answer(purpose, question).value

    def answer(self, purpose: str, question: Callable[[BrokerConnection], _T]) -> Answer[_T]:
        """As `ask`, with whether a broker may do it once more, and later."""
        failure = Unavailable(f"cannot {purpose}: Kafka has no brokers; check its settings")
        until = time.monotonic() + _PATIENCE_S
        may_come = False
        for address in self._in_order():
            began, sent = time.monotonic(), False
            try:
                with network_errors(purpose), self.lent(address) as connection:
                    sent = True
                    value = question(connection)
            except Unavailable as error:
                failure = error
                may_come = may_come or sent
                if time.monotonic() > until:
                    break
                continue
            self._note(address)
            return Answer(value, not may_come and time.monotonic() - began < _SENT_ONCE_S)
        raise Unanswered(str(failure)) if may_come else failure

    def learn(self, addresses: Collection[BrokerAddress]) -> None:
        """There are brokers at these addresses, too."""
        with self._lock:
            self._known += [each for each in addresses if each not in self._known]

    def close(self) -> None:
        """Close all connections that nobody has borrowed."""
        with self._lock:
            for connections in self._idle.values():
                while connections:
                    connections.pop().close()

    def _in_order(self) -> list[BrokerAddress]:
        with self._lock:
            return list(self._known)

    def _note(self, answered: BrokerAddress) -> None:
        with self._lock:
            if self._known[0] != answered:
                self._known.remove(answered)
                self._known.insert(0, answered)

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


def _address(text: str) -> BrokerAddress:
    host, _, port = text.strip().rpartition(":")
    if not port.isdecimal():
        raise InvalidInput(f"bootstrap in [kafka] has {text.strip()!r}, and not HOST:PORT")
    return BrokerAddress(host.strip("[]"), int(port))
