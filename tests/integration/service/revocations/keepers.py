"""Subscribers who lose nothing, whatever is taken from the others of their class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING

from tests.integration.service.conftest import Api
from tests.integration.service.revocations.library_clients import Assigned
from tests.integration.service.revocations.raw_clients import PARKED, Fetcher
from tests.integration.service.revocations.surroundings import Surroundings
from tests.integration.service.revocations.team import Objects
from tests.integration.service.revocations.waiting import wait_until
from tests.integration.service.revocations.watching_client import WatchingClient


class Keepers:
    """For each output two clients of the user, one of them parked."""

    def __init__(self, around: Surroundings, objects: Objects, user: Api) -> None:
        self._flow = around.flow
        self._clients: list[WatchingClient] = []
        for output in (objects.one, objects.both):
            own = around.subscribe(user, output)
            self._clients += [Assigned(own, OFFSET_BEGINNING), Fetcher(own, PARKED, 0)]
        for client in self._clients:
            client.start()

    def topics(self) -> set[str]:
        """What they read."""
        return {client.subscription.topic for client in self._clients}

    def expect_all(self) -> None:
        """Each has got every number that was written, once, in order, and was never refused."""
        for client in self._clients:
            whole = list(range(len(self._flow.started[client.subscription.topic])))

            def has_all(client: WatchingClient = client, count: int = len(whole)) -> bool:
                return len(client.received) >= count

            wait_until(has_all, "every number")
            received = [one.number for one in client.received]
            assert received == whole, f"{type(client).__name__}: {_difference(received, whole)}"
            assert not client.is_shut_out(0, 0)

    def end(self) -> None:
        """Let the clients end."""
        for client in self._clients:
            client.stop()
        for client in self._clients:
            client.join()
            assert client.failure is None


def _difference(received: Sequence[int], whole: Sequence[int]) -> str:
    """What is missing, what came again, and else where the order is broken."""
    missing, again = Counter(whole) - Counter(received), Counter(received) - Counter(whole)
    if missing or again:
        return f"missing {sorted(missing)}, once too often {sorted(again)}"
    return f"out of order from {next(at for at in whole if received[at] != at)} on"
