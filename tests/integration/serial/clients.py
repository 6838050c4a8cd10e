"""Who reads by an access: an honest client, and hostile ones that never let go."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from threading import Event, Thread

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from catalog.topics import out_pattern
from tests.integration.serial.people import Caller
from tests.integration.service.revocations.ledger import Reception
from tests.integration.service.revocations.library_clients import GroupMember, LibraryClient
from tests.integration.service.revocations.raw_clients import PARKED, Fetcher
from tests.integration.service.revocations.watching_client import Subscription, WatchingClient

_LOOK_S = 0.3


class Follower(GroupMember):
    """Reads what it was given, and commits how far it is: the honest client."""

    def __init__(self, subscription: Subscription) -> None:
        commits = {"enable.auto.commit": True, "auto.commit.interval.ms": 500}
        begins = {"auto.offset.reset": "earliest"}
        super().__init__(subscription, "main", **commits, **begins)

    @property
    def wanted(self) -> str:
        return out_pattern(self.subscription.output)


class Grabber(LibraryClient):
    """Takes every topic that anybody reads, from its beginning on."""

    def __init__(self, subscription: Subscription, known: Callable[[], Collection[str]]) -> None:
        often = {"topic.metadata.refresh.interval.ms": 2_000}
        super().__init__(subscription, "grab", **often)
        self._known = known
        self._next: dict[str, int] = {}

    def take_up(self, consumer: Consumer) -> None:
        """Nothing is known yet."""

    def _poll(self, consumer: Consumer) -> None:
        new = set(self._known()) - self._next.keys()
        if new:
            self._next |= dict.fromkeys(new, OFFSET_BEGINNING)
            consumer.assign([TopicPartition(t, 0, at) for t, at in self._next.items()])
        message = consumer.poll(_LOOK_S)
        if message is not None and message.error() is None:
            topic = str(message.topic())
            self._next[topic] = (message.offset() or 0) + 1
            self.got(topic, message.value() or b"")


@dataclass
class Party:
    """An access with all that read by it. Each of its topics is read by a parked fetch too."""

    subscription: Subscription
    clients: list[WatchingClient] = field(default_factory=list)
    parked: set[str] = field(default_factory=set)

    @classmethod
    def begin(cls, subscription: Subscription, known: Callable[[], Collection[str]]) -> Party:
        """Let the honest client read, and a hostile one."""
        made = cls(subscription)
        made._add(Follower(subscription))
        made._add(Grabber(subscription, known))
        return made

    @property
    def principal(self) -> str:
        """The Kafka user of the access."""
        return self.subscription.credentials.username

    @property
    def honest(self) -> WatchingClient:
        """The client that reads as it should."""
        return self.clients[0]

    def received(self) -> list[Reception]:
        """What has come to any of them."""
        return [one for client in tuple(self.clients) for one in tuple(client.received)]

    def take(self, topics: Collection[str]) -> None:
        """Park a fetch in each topic that is new."""
        for topic in set(topics) - self.parked:
            self.parked.add(topic)
            own = self.subscription
            there = Subscription(own.settings, own.credentials, topic, own.output, own.folder)
            self._add(Fetcher(there, PARKED, 0))

    def end(self) -> None:
        """Let all of them end."""
        for client in self.clients:
            client.stop()

    def join(self) -> None:
        """Wait until they have ended; none has failed."""
        for client in self.clients:
            client.join()
            assert client.failure is None, f"{type(client).__name__}: {client.failure!r}"

    def _add(self, client: WatchingClient) -> None:
        self.clients.append(client)
        client.start()


class Watch(Thread):
    """Looks at the accesses of a user all the time: which topics they have, and when all is fed."""

    def __init__(self, user: Caller, seen: Callable[[str, Collection[str]], None]) -> None:
        super().__init__(name=f"watch {user.name}", daemon=True)
        # When it was asked and answered that an access is fed.
        self.fed: dict[str, list[tuple[float, float]]] = {}
        self.live: frozenset[str] = frozenset()
        self.shown: frozenset[str] = frozenset()
        self.looks = 0
        self.failure: BaseException | None = None
        self._user, self._seen, self._over = user, seen, Event()

    def run(self) -> None:
        """Look until `close`."""
        try:
            while not self._over.wait(_LOOK_S):
                self._look()
        except BaseException as failure:
            self.failure = failure

    def _look(self) -> None:
        asked = time.monotonic()
        rows = self._user.ask("/accesses")
        answered = time.monotonic()
        for row in rows:
            self._seen(row["principal"], row["topics"])
            if row["fed"] and row["active"]:
                self.fed.setdefault(row["principal"], []).append((asked, answered))
        self.live = frozenset(row["principal"] for row in rows)
        self.shown = frozenset(row["principal"] for row in rows if row["active"])
        self.looks += 1

    def are_fed(self, since: float) -> bool:
        """Whether all that reads now was told to be fed after that time."""
        assert self.failure is None, self.failure
        return all(each in self.fed and self.fed[each][-1][0] > since for each in self.shown)

    def close(self) -> None:
        """Stop looking."""
        self._over.set()
        self.join()
        assert self.failure is None, self.failure
