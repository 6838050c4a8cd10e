"""A query whose state is full, on the whole platform: what it leaves out is told to some."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.runtime import Runtime
from deploy.scenario.listener import Listener
from deploy.scenario.person import Person
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions
from secfilter.moving_rules import MAX_GROUPS
from tests.integration.flowing import Typist, await_that, now_text, sender_of

pytestmark = pytest.mark.long
STREAMS = ("one", "two")
COUNTS = (
    "WITH both AS (SELECT ts, n FROM one UNION ALL SELECT ts, n FROM two) "
    "SELECT n, COUNT(*) AS many FROM both GROUP BY n"
)
# These come when no further group opens: the first two are of new groups.
NEW, KNOWN = (-1, -2), 0
# All groups are sent, counted and delivered, and then are in one state.
FULL_S = 300.0


@dataclass
class Place:
    """A platform with two streams, and a query that counts the tuples of both."""

    admin: Person
    bob: Person
    producers: dict[str, tuple[Producer, str]]
    listeners: dict[str, Listener] = field(default_factory=dict)

    def read(self, person: Person) -> Path:
        """Subscribe, and read the results all the time. The folder of the subscription."""
        folder = person.subscribe("counts")
        self.listeners[person.name] = Listener(folder).start()
        await_that(lambda: is_fed(person), f"the class of {person.name} is fed")
        return folder

    def send(self, stream: str, numbers: Iterable[int]) -> None:
        """Send tuples of now with these numbers, and wait until the broker has them."""
        producer, topic = self.producers[stream]
        for number in numbers:
            producer.produce(topic, json.dumps({"ts": now_text(), "n": number}).encode())
            producer.poll(0)
        assert producer.flush(60) == 0

    def counts(self, person: Person) -> dict[int, int]:
        """How often each number was counted, as far as this person gets it."""
        found: dict[int, int] = {}
        for each in tuple(self.listeners[person.name].deliveries):
            number, many = each.value["n"], each.value["many"]
            found[number] = max(many, found.get(number, 0))
        return found


def is_fed(person: Person) -> bool:
    """Whether all results come to the person's one subscription."""
    (row,) = (row for row in person.ask("accesses") if row["name"] == "counts")
    return bool(row["fed"])


def left_out(person: Person, folder: Path) -> list[Any]:
    """What `consume --left-out` shows from the beginning of the topics."""
    options = ("--left-out", "--from", "beginning", "--timeout", "10")
    lines = person.run("--json", "consume", str(folder), *options).splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def place(runtime: Runtime, tmp_path: Path) -> Iterator[Place]:
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with Stack(options, runtime) as stack:
        admin = Typist.administrator(stack)
        admin.run("schema", "add", "s", "ts:timestamp!", "n:bigint!")
        bob = Typist.at(stack, "bob")
        one_time = admin.ask("user", "add", "bob")["password"]
        admin.run("role", "add", "reader")
        producers = {}
        for stream in STREAMS:
            timed = ("--event-time", "ts", "--max-ahead", "1s")
            admin.run("stream", "add", stream, "--schema", "s", *timed)
            for permission in ("SEND", "READ TUPLE"):
                admin.run("grant", "ADMIN", permission, "stream", stream)
            folder = admin.folder / f"sender-{stream}"
            admin.run("sender", stream, "--dir", str(folder))
            producers[stream] = sender_of(folder)
        admin.run("query", "add", "counts", "-", "--language", "sql", text=COUNTS)
        admin.run("grant", "reader", "READ TUPLE", "stream", "one")
        admin.run("grant", "reader", "VIEW OBJECT", "SUBSCRIBE", "output", "counts")
        admin.run("user", "assign", "bob", "reader")
        bob.log_in(one_time)
        made = Place(admin, bob, producers)
        try:
            yield made
        finally:
            for listener in made.listeners.values():
                listener.close()


def test_who_may_see_all_that_the_windows_can_hold_is_told(place: Place) -> None:
    admin, bob = place.admin, place.bob
    folders = {each.name: place.read(each) for each in (admin, bob)}
    groups = MAX_GROUPS.tuples
    place.send("one", range(groups))
    await_that(lambda: len(place.counts(admin)) == groups, "all groups are open", FULL_S)
    before = time.time()
    # Both users may see these tuples. But that there is no room reveals the other stream, too.
    place.send("one", (*NEW, KNOWN))
    for person in (admin, bob):
        await_that(lambda: place.counts(person)[KNOWN] == 2, "the known group goes on")  # noqa: B023
    place.send("two", (KNOWN,))
    await_that(lambda: place.counts(admin)[KNOWN] == 3, "the known group goes on")

    found = left_out(admin, folders["admin"])
    assert [(each["value"]["reason"], each["value"]["window"]) for each in found] == [
        ("window_full", 1)
    ] * len(NEW)
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(before - 1))
    assert all(each["value"]["time"] >= since for each in found)
    assert len({each["id"] for each in found}) == len(NEW)
    assert left_out(bob, folders["bob"]) == []
    assert place.counts(bob).keys() == place.counts(admin).keys() == {*range(groups)}
    assert place.counts(bob)[KNOWN] == 2, "what the other stream added is not his"
