"""Rights that change while records flow, on the whole platform: nothing that stays has a gap.

Forty records a second go to each of two streams. Two queries read both: one gives each record,
one gives closed windows.

In the first test the right to read the second stream comes and goes in each way that there is: by a
grant (`bob`), a junior role (`lead`), the assignment of a role (`member`), and by a role that is
deactivated (`active`). Others have rights that stay as they are. In the second test subscribers
begin with both streams, in one whole class, and lose one: what is left comes from a smaller class,
which is refilled. Where each class has a view of its own, it begins empty.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from deploy.runtime import Runtime
from deploy.scenario.listener import Listener
from deploy.scenario.person import Person
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions
from tests.integration.flowing import PAUSE_S, Flow, Reader, Typist, await_that

# A restart of a run holds up all readers of its results. Here two restart at once, in an engine
# that has just begun.
LONGEST_WAIT_S = 4.0
WINDOW_S = 1
# How many records flow between giving and taking, and after it: thirty seconds of them.
BETWEEN = 1200
STREAMS = ("one", "two")
ROLES = {
    "bob": ("one",),
    "lead": ("one",),
    "still": ("one",),
    "both": ("one", "two"),
    "second": ("two",),
    "active": ("one", "two"),
}
# They begin with one whole class of both streams.
LOSERS = {"bob": ("one", "two"), "lead": ("one",), "second": ("two",)}
EACH, WINDOWS, VIEWS = "result", "windows", "views"
QUERIES = {
    EACH: "SELECT stream, n FROM {stream}",
    WINDOWS: "SELECT stream, MIN(n) AS low, MAX(n) AS high, COUNT(*) AS many FROM {stream} "
    f"GROUP BY TUMBLE(ts, INTERVAL '{WINDOW_S}' SECOND), stream",
}
# Each class has windows of its own.
OF_VIEWS = {**QUERIES, VIEWS: QUERIES[WINDOWS]}
# Closed windows come when the watermark has passed: after a window, the lateness and a batch.
OPEN = int((WINDOW_S + 4) / PAUSE_S)


@dataclass
class Exchange:
    """Who is there."""

    stack: Stack
    admin: Person
    flow: Flow
    readers: dict[str, Reader] = field(default_factory=dict)
    of_windows: dict[str, Reader] = field(default_factory=dict)

    def subscribe(self, name: str, role: str) -> Reader:
        """A new user with the role subscribes to the results of each record."""
        one_time = self.admin.ask("user", "add", name)["password"]
        self.admin.run("user", "assign", name, role)
        person = Typist.at(self.stack, name)
        person.log_in(one_time)
        self.readers[name] = Reader.begin(person, EACH)
        return self.readers[name]

    def close(self) -> None:
        """Everybody stops."""
        self.flow.close()
        for reader in (*self.readers.values(), *self.of_windows.values()):
            reader.listener.close()


@contextmanager
def exchanging(
    runtime: Runtime,
    state: Path,
    roles: Mapping[str, tuple[str, ...]],
    queries: Mapping[str, str],
    settings: Path | None = None,
    timed: Sequence[str] = (),
) -> Iterator[Exchange]:
    """A platform with two streams, these queries over both, and these roles.

    `settings` are those of an operator, if not all of it is its own. `timed` are more options of
    the streams.
    """
    options = StackOptions(
        state, broker_port=0, secadmin_port=0, settings=settings, batch_ms=BATCH_MS
    )
    with Stack(options, runtime) as stack:
        admin = Typist.administrator(stack)
        admin.run("schema", "add", "s", "ts:timestamp!", "stream:string!", "n:bigint!")
        folders = {}
        for stream in STREAMS:
            admin.run("stream", "add", stream, "--schema", "s", "--event-time", "ts", *timed)
            admin.run("grant", "ADMIN", "SEND", "stream", stream)
            folders[stream] = admin.folder / f"sender-{stream}"
            admin.run("sender", stream, "--dir", str(folders[stream]))
        for name, part in queries.items():
            text = " UNION ALL ".join(part.format(stream=stream) for stream in STREAMS)
            semantics = ["--semantics", "view"] if name == VIEWS else []
            admin.run("query", "add", name, "-", "--language", "sql", *semantics, text=text)
        made = Exchange(stack, admin, Flow(folders))
        try:
            for role, streams in roles.items():
                add_role(admin, role, streams, queries)
            yield made
        finally:
            made.close()


@pytest.fixture
def exchange(runtime: Runtime, tmp_path: Path) -> Iterator[Exchange]:
    with exchanging(runtime, tmp_path / "state", ROLES, QUERIES) as made:
        for role in ROLES:
            made.subscribe(role, role)
        for name in ("bob", "still"):
            made.of_windows[name] = Reader.begin(made.readers[name].person, WINDOWS)
        for reader in (*made.readers.values(), *made.of_windows.values()):
            await_that(reader.is_fed, "its class is fed")
        made.flow.start()
        yield made


def add_role(
    admin: Person, role: str, streams: tuple[str, ...], outputs: Mapping[str, str]
) -> None:
    """A role that may subscribe and read these streams."""
    admin.run("role", "add", role)
    for output in outputs:
        admin.run("grant", role, "VIEW OBJECT", "SUBSCRIBE", "output", output)
    for stream in streams:
        admin.run("grant", role, "READ TUPLE", "stream", stream)


@pytest.mark.long
def test_rights_come_and_go_while_records_flow(exchange: Exchange) -> None:
    admin, flow, readers = exchange.admin, exchange.flow, exchange.readers
    bob, lead, windows = readers["bob"], readers["lead"], exchange.of_windows["bob"]
    await_that(lambda: bob.has("one", 0, 40), "the first stream flows")
    await_that(lambda: windows.has("one", 0, 40), "its windows close")
    (stays,) = bob.access()["topics"]

    # What is sent when the call has returned comes, also what is sent before the class is fed.
    given = {}
    admin.run("grant", "bob", "READ TUPLE", "stream", "two")
    given["bob"] = flow.count("two")
    admin.run("role", "junior", "lead", "second")
    given["lead"] = flow.count("two")
    member = exchange.subscribe("member", "both")
    given["member"] = flow.count("two")
    for name, reader in {"bob": bob, "lead": lead, "member": member, "windows": windows}.items():
        await_that(reader.is_fed, f"the second stream is fed to {name}")
    await_that(lambda: bool(bob.access()["fed_since"]), "since when is noted")
    fed = flow.count("two")
    enough = fed + BETWEEN
    await_that(lambda: flow.count("two") > enough, "records flow")
    for name, first in given.items():
        await_that(partial(readers[name].has, "two", first, enough), f"all came to {name}")
    await_that(lambda: windows.has("two", fed + OPEN, enough - OPEN), "windows came")
    await_that(lambda: bool(windows.numbers("two")), "a window of the second stream came")

    returned = {}
    admin.run("revoke", "bob", "READ TUPLE", "stream", "two")
    returned["bob"] = flow.count("two")
    admin.run("role", "junior", "lead", "second", "--remove")
    returned["lead"] = flow.count("two")
    admin.run("user", "unassign", "member", "both")
    returned["member"] = flow.count("two")
    readers["active"].person.run("deactivate", "active")
    returned["active"] = flow.count("two")
    assert bob.access()["topics"] == [stays]
    await_that(lambda: flow.count("two") > returned["active"] + BETWEEN, "more is sent")
    flow.close()

    for name in ("bob", "lead", "still", "both"):
        await_that(partial(readers[name].has, "one", 0, flow.count("one")), f"one for {name}")
        assert len(readers[name].topics("one")) == 1, "none was moved"
    for name in ("both", "second"):
        await_that(partial(readers[name].has, "two", 0, flow.count("two")), f"two for {name}")
    for name in ("bob", "still"):
        await_that(
            partial(exchange.of_windows[name].has, "one", 0, flow.count("one") - OPEN),
            f"windows of one for {name}",
        )
    assert bob.topics("one") == {stays}
    assert stays not in bob.topics("two")
    for name, before in returned.items():
        got = readers[name].numbers("two")
        assert max(got) < before, f"{name} got what was sent when the call had returned"
    assert max(windows.numbers("two")) < returned["bob"]
    assert readers["still"].numbers("two") == readers["second"].numbers("one") == set()
    waits = {name: readers[name].longest_wait("one") for name in ("bob", "lead", "still", "both")}
    waits["second"] = readers["second"].longest_wait("two")
    closed = {name: each.longest_wait("one") for name, each in exchange.of_windows.items()}
    print("longest waits in seconds:", waits, "for windows:", closed)
    assert max(waits.values()) <= LONGEST_WAIT_S, waits
    # A window comes once a second, and two batches after the watermark has passed it.
    assert max(closed.values()) <= LONGEST_WAIT_S + 3 * WINDOW_S, closed


@pytest.mark.long
def test_what_is_left_of_a_class_that_is_cut_has_no_gap(runtime: Runtime, tmp_path: Path) -> None:
    """One more reader (`away`) is not there when the right goes; it comes back much later."""
    with exchanging(runtime, tmp_path / "state", LOSERS, OF_VIEWS) as exchange:
        admin, flow = exchange.admin, exchange.flow
        admin.run("role", "junior", "lead", "second")
        bob, lead, away = (exchange.subscribe(*each) for each in _USERS)
        of_bob = {name: Reader.begin(bob.person, name) for name in (WINDOWS, VIEWS)}
        exchange.of_windows = of_bob
        for reader in (bob, lead, away, *of_bob.values()):
            await_that(reader.is_fed, "its class is fed")
        flow.start()
        for reader in (bob, lead, away):
            await_that(partial(reader.has, "two", 0, 40), "both streams flow")
        for reader in of_bob.values():
            await_that(partial(reader.has, "one", 0, 40), "windows close")
        before = {each.topic for reader in (bob, lead, away) for each in reader.arrivals}
        assert len(before) == 1, "they read one whole class"
        away.listener.close()
        gone, seen = flow.count("one"), away.numbers("two")
        await_that(lambda: flow.count("one") > gone + SOME, "more is sent")

        admin.run("revoke", "bob", "READ TUPLE", "stream", "two")
        returned = {"bob": flow.count("two")}
        admin.run("role", "junior", "lead", "second", "--remove")
        returned["lead"] = flow.count("two")
        for reader in (bob, lead, *of_bob.values()):
            await_that(reader.is_fed, "the smaller class is fed")
        taken = flow.count("one")
        await_that(lambda: flow.count("one") > taken + SOME, "more is sent")
        back = Listener(away.listener.folder, deliveries=away.arrivals).start()
        try:
            flow.close()
            sent = flow.count("one")
            for reader in (bob, lead, away):
                await_that(partial(reader.has, "one", 0, sent), "the first stream, all of it")
            await_that(partial(of_bob[WINDOWS].has, "one", 0, sent - OPEN), "all of its windows")
            # A view begins empty.
            newest = range(sent - OPEN - 40, sent - OPEN)
            await_that(lambda: of_bob[VIEWS].numbers("one") >= set(newest), "its view goes on")
        finally:
            back.close()

        for name, reader in (("bob", bob), ("lead", lead)):
            assert max(reader.numbers("two")) < returned[name]
        for reader in of_bob.values():
            assert max(reader.numbers("two")) < returned["bob"]
        assert away.numbers("two") == seen, "when it comes back, its topic is cut"
        for reader in (bob, lead, away, *of_bob.values()):
            assert reader.topics("two") < reader.topics("one"), "the smaller class has one alone"
        for reader in (bob, lead, away, of_bob[WINDOWS]):
            assert set(map(len, ids_of(reader).values())) == {1}, "what comes again has its id"
        waits = {name: each.longest_wait("one") for name, each in (("bob", bob), ("lead", lead))}
        closed = {WINDOWS: of_bob[WINDOWS].longest_wait("one")}
        print("longest waits in seconds:", waits, "for windows:", closed)
        assert max(waits.values()) <= LONGEST_WAIT_S, waits
        assert max(closed.values()) <= LONGEST_WAIT_S + 3 * WINDOW_S, closed


_USERS = (("bob", "bob"), ("lead", "lead"), ("away", "bob"))
# How many records flow while somebody is away.
SOME = 200


def ids_of(reader: Reader) -> dict[str, set[str]]:
    """The ids with which each result came."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in tuple(reader.arrivals):
        found[json.dumps(each.value, sort_keys=True)].add(each.id)
    return found
