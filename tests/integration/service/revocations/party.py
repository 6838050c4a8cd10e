"""One subscription with all its clients, and the pool of subscriptions that share roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from tests.integration.service.revocations.ledger import Ledger, Reception
from tests.integration.service.revocations.library_clients import (
    Assigned,
    GroupMember,
    PatternFollower,
)
from tests.integration.service.revocations.raw_clients import (
    HUGE,
    PARKED,
    POLLING,
    Fetcher,
    LoggingInAgain,
    SecondConnection,
)
from tests.integration.service.revocations.waiting import wait_until
from tests.integration.service.revocations.watching_client import Subscription, WatchingClient

_BEYOND = 30
_SOME_LIBRARY_CLIENTS = 2

ClientsOf = Callable[[Subscription, int, Random], list[WatchingClient]]
"""Makes the clients of a subscription, whose topic ends at the offset."""


def all_kinds(subscription: Subscription, end: int, random: Random) -> list[WatchingClient]:
    """The well-behaved client, all that speak the protocol, and some of those of the library."""
    more: list[Callable[[], WatchingClient]] = [
        lambda: GroupMember(subscription, "other"),
        lambda: PatternFollower(subscription, "pattern"),
        lambda: Assigned(subscription, OFFSET_BEGINNING),
        lambda: Assigned(subscription, OFFSET_END),
        lambda: Assigned(subscription, end + _BEYOND),
        lambda: Fetcher(subscription, POLLING, end + _BEYOND),
    ]
    return [
        GroupMember(subscription, "main"),
        Fetcher(subscription, PARKED, end),
        Fetcher(subscription, HUGE, end),
        SecondConnection(subscription, end),
        LoggingInAgain(subscription, end),
        *(make() for make in random.sample(more, _SOME_LIBRARY_CLIENTS)),
    ]


def parked_alone(subscription: Subscription, end: int, random: Random) -> list[WatchingClient]:
    """Just the client whose fetch waits for the filler."""
    return [Fetcher(subscription, PARKED, end)]


@dataclass(frozen=True)
class Party:
    """A subscription and its clients."""

    subscription: Subscription
    clients: Sequence[WatchingClient]

    @property
    def principal(self) -> str:
        """The subscription's Kafka user."""
        return self.subscription.credentials.username

    def start(self) -> None:
        """Let all clients read."""
        for client in self.clients:
            client.start()

    def stop(self) -> None:
        """Let all clients end."""
        for client in self.clients:
            client.stop()

    def join(self) -> None:
        """Wait until they have ended."""
        for client in self.clients:
            client.join()
            assert client.failure is None, f"{_name(client)}: {client.failure!r}"

    def wait_ready(self, since: float) -> None:
        """Wait until every client reads, or waits, by a request of after `since`."""
        self._wait(lambda client: client.is_ready(since), "reads")

    def wait_read(self, since: float) -> None:
        """Wait until every client has got something after `since`."""
        self._wait(lambda client: client.has_read(since), "reads")

    def call_begins(self) -> None:
        """Tell the clients that a call that takes the topic is about to begin."""
        for client in self.clients:
            client.call_begins()

    def wait_shut_out(self, began: float, returned: float) -> None:
        """Wait until every client was refused what the call took."""
        self._wait(lambda client: client.is_shut_out(began, returned), "is refused")
        for client in self.clients:
            client.call_is_over()

    def leaks(self, ledger: Ledger, started: Mapping[str, Sequence[float]]) -> list[Reception]:
        """What reached a client although it must not."""
        every = (one for client in self.clients for one in client.received)
        return ledger.leaks(self.principal, every, started)

    def _wait(self, condition: Callable[[WatchingClient], bool], what: str) -> None:
        for client in self.clients:

            def holds(client: WatchingClient = client) -> bool:
                assert client.failure is None, f"{_name(client)}: {client.failure!r}"
                return condition(client)

            wait_until(holds, f"{_name(client)} {what}")


def _name(client: WatchingClient) -> str:
    own = {name: vars(client).get(name) for name in ("_limits", "_offset")}
    return f"{type(client).__name__} {own}"
