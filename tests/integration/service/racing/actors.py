"""Who races: threads that call the services at random, each with a task of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from catalog.settings import KafkaSettings
from secadmin.cli.kafka.bounded_close import close
from secadmin.cli.kafka.missed_topics import MissedTopics
from secadmin.cli.kafka.retaking import Retaking
from secadmin.kafka.principals import Credentials
from tests.integration.kafka.clients import DENIED_TOPIC, Reader, until

_PATIENCE_S = 120.0
_RETAKEN_AFTER_S = 0.2


@dataclass
class Services:
    """Calls go to any of the services; a 503 is tried again, as it asks for.

    So is a call to a service that dies meanwhile, at another one: it may have been carried out.
    """

    clients: Sequence[httpx.Client]
    slowest_s: float = 0.0

    def call(
        self,
        random: Random,
        token: str | None,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Call one of the services until it does not say that it is busy."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        began = time.monotonic()
        while True:
            client, late = random.choice(self.clients), time.monotonic() > began + _PATIENCE_S
            try:
                answer = client.request(method, path, headers=headers, json=body)
            except httpx.TransportError:
                assert not late, f"no service answers {method} {path}"
                time.sleep(0.05)
                continue
            if answer.status_code != 503 or late:
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                return answer


@dataclass
class Person:
    """Somebody with a password, who calls the services."""

    services: Services
    name: str
    password: str
    random: Random
    token: str | None = None

    def do(self, method: str, path: str, *accepted: int, **body: Any) -> Any:
        """Call, which must succeed or answer one of `accepted`; what was answered, if anything."""
        answer = self.services.call(self.random, self.token, method, path, body or None)
        assert answer.is_success or answer.status_code in accepted, answer.text
        return answer.json() if answer.is_success and answer.content else None

    def log_in(self) -> None:
        """Open a session."""
        self.token = self.do("POST", "/login", user=self.name, password=self.password)["token"]

    def log_out(self) -> None:
        """End the session, which has ended already where the call is repeated after a 503."""
        self.do("POST", "/logout", 401)
        self.token = None

    def change_right(self, give: bool, role: str, permission: str, kind: str, name: str) -> None:
        """Grant it or revoke it."""
        path = "/grants" if give else "/revocations"
        self.do("POST", path, role=role, permissions=[permission], kind=kind, name=name)


class Witness(threading.Thread):
    """A consumer that notes when each value came."""

    def __init__(self, kafka: KafkaSettings, credentials: Credentials, pattern: str) -> None:
        super().__init__(name=credentials.username)
        self.polls = 0
        self.came: list[tuple[float, str]] = []
        self._reader = Reader(kafka, credentials)
        self._pattern = pattern
        self._retaking = Retaking(_RETAKEN_AFTER_S)
        self._missed = MissedTopics()
        self._subscribe()
        self._over = threading.Event()

    def run(self) -> None:
        """Poll until `close`."""
        while not self._over.is_set():
            known = len(self._reader.values)
            self._missed.serve(self._reader.consumer, self._pattern, self._subscribe)
            self._retaking.serve(self._reader.consumer, self._subscribe)
            self._reader.poll()
            if DENIED_TOPIC in self._reader.errors:
                self._reader.errors.clear()
                self._retaking.denied()
            now = time.monotonic()
            self.came += [(now, value) for value in self._reader.values[known:]]
            self.polls += 1

    def expect(self, value: str) -> None:
        """Wait until the value has come."""
        until(lambda: value in {each for _, each in self.came}, "the witness to get it")

    def look(self) -> None:
        """Wait until it has looked for news several times from now on."""
        now = self.polls
        until(lambda: self.polls > now + 4, "the witness to look", _PATIENCE_S)

    def close(self) -> None:
        """Stop polling."""
        self._over.set()
        self.join()
        close(self._reader.consumer)

    def _subscribe(self) -> None:
        self._reader.consumer.subscribe([self._pattern])


@dataclass
class Referee:
    """Shuts the role of one reader out, writes what it must not get, and lets it in again.

    `shut` holds what was written after the revocation had returned: value, and when the grant that
    let the role in again was asked for.
    """

    admin: Person
    reader: str
    role: str
    output: str
    witness: Witness
    write: Callable[[str], None]
    shut: dict[str, float] = field(default_factory=dict)

    def round(self) -> None:
        """Once more."""
        permission = self.admin.random.choice(["SUBSCRIBE", "VIEW OBJECT"])
        self.admin.change_right(False, self.role, permission, "output", self.output)
        value = f"{self.role} {len(self.shut)}"
        self.write(value)
        self.witness.look()
        self.shut[value] = time.monotonic()
        self.admin.change_right(True, self.role, permission, "output", self.output)

    def leaks(self) -> list[str]:
        """What came to the witness while its role was shut out."""
        return [value for came, value in self.witness.came if came < self.shut.get(value, 0)]
