"""Level engines on the whole platform: what happens to one level, another one does not notice.

Two companies send to a stream each, and one isolated query reads both. Each reader's level is one
of the companies, so each has an engine. One engine is killed while records flow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from deploy.processes import LogTail
from deploy.runtime import Runtime
from deploy.scenario.person import Person
from deploy.scenario.story import BATCH_MS
from deploy.settings import Table, merged
from deploy.stack import Stack, StackOptions
from tests.integration.flowing import Flow, Reader, Typist, await_that

pytestmark = pytest.mark.long
COMPANIES = {"one": "A", "two": "B"}
QUERY = "pulse"
# How many records flow before and after: some seconds of them.
SOME = 200
LONGEST_WAIT_S = 3.0


class WithLevels(Stack):
    """A platform with three query engines, of which two are level engines."""

    def _table(self) -> Table:
        return merged(super()._table(), {"secfilter": {"level_engines": 2}})


@dataclass
class Place:
    """The platform, and who reads there."""

    stack: Stack
    admin: Person
    flow: Flow
    readers: dict[str, Reader]

    def join(self, name: str, level: str) -> Person:
        """A new user with that level."""
        one_time = self.admin.ask("user", "add", name)["password"]
        self.admin.run("user", "assign", name, "reader")
        self.admin.run("wall", "set", "COI", name, level)
        person = Typist.at(self.stack, name)
        person.log_in(one_time)
        return person

    def read(self, person: Person) -> Reader:
        """Read the query's results, once they are fed."""
        self.readers[person.name] = made = Reader.begin(person, QUERY)
        await_that(made.is_fed, f"{person.name} is fed")
        return made

    def engines(self) -> str:
        """The engines that run the query."""
        (row,) = self.admin.ask("execution", "list")
        return str(row["engine"])

    def await_more(self, *streams: str) -> None:
        """Wait until more is sent."""
        for stream in streams:
            enough = self.flow.count(stream) + SOME
            await_that(partial(self._has_sent, stream, enough), "records flow")

    def _has_sent(self, stream: str, count: int) -> bool:
        return self.flow.count(stream) >= count

    def close(self) -> None:
        """Everybody stops."""
        self.flow.close()
        for reader in self.readers.values():
            reader.listener.close()


@pytest.fixture
def place(runtime: Runtime, tmp_path: Path) -> Iterator[Place]:
    state = tmp_path / "state"
    options = StackOptions(state, broker_port=0, secadmin_port=0, batch_ms=BATCH_MS, engines=3)
    with WithLevels(options, runtime) as stack:
        admin = Typist.administrator(stack)
        admin.run("conflict-class", "add", "COI", *COMPANIES.values())
        admin.run("schema", "add", "s", "ts:timestamp!", "stream:string!", "n:bigint!")
        admin.run("role", "add", "reader")
        folders = {}
        for stream, company in COMPANIES.items():
            rule = ("--company", f"COI='{company}'")
            admin.run("stream", "add", stream, "--schema", "s", "--event-time", "ts", *rule)
            admin.run("grant", "ADMIN", "SEND", "stream", stream)
            admin.run("grant", "reader", "READ TUPLE", "stream", stream)
            folders[stream] = admin.folder / f"sender-{stream}"
            admin.run("sender", stream, "--dir", str(folders[stream]))
        parts = " UNION ALL ".join(f"SELECT stream, n FROM {stream}" for stream in COMPANIES)
        text = f"SEMANTICS ISOLATED {parts}"
        admin.run("query", "add", QUERY, "-", "--language", "sql", text=text)
        admin.run("grant", "reader", "VIEW OBJECT", "SUBSCRIBE", "output", QUERY)
        made = Place(stack, admin, Flow(folders), {})
        try:
            yield made
        finally:
            made.close()


def test_what_happens_to_one_level_another_one_does_not_notice(place: Place) -> None:
    ann, bob = place.read(place.join("ann", "A")), place.read(place.join("bob", "B"))
    assert place.engines() == "query-2, query-3"
    trusted = place.join("tom", "T")
    folder = str(trusted.folder / "refused")
    refused = trusted.attempt("subscribe", QUERY, "--dir", folder, "--no-wait")
    assert refused.returncode and "no engine is free" in refused.stderr

    place.flow.start()
    place.await_more("one", "two")
    log = LogTail(place.stack.engines["query-3"].log)
    place.stack.engines["query-2"].kill()
    place.await_more("two")
    came = len(bob.arrivals)
    place.stack.start_engines(["query-2"])
    place.await_more("two")
    assert len(bob.arrivals) > came
    waited = bob.longest_wait("two")
    sent = place.flow.count("one")
    await_that(partial(ann.has, "one", 0, sent), "nothing of the other level is lost")
    changes = [line for line in log.read().splitlines() if "INFO query-" in line]
    assert not changes, "the run of the other level went on as it was"
    assert waited < LONGEST_WAIT_S, f"bob noticed it: {waited:.1f} s"
    assert not ann.numbers("two") and not bob.numbers("one")

    # The level leaves, and its engine is free for another one.
    bob.listener.close()
    bob.person.run("unsubscribe", bob.access()["principal"])

    def subscribed() -> bool:
        done = trusted.attempt("subscribe", QUERY, "--dir", folder, "--no-wait")
        return done.returncode == 0

    await_that(subscribed, "an engine is free")
    # What ann reads has been on trial since its engine died, and moves home when it is proven.
    await_that(lambda: place.engines() == "query-2, query-3", "each level is in its engine")
