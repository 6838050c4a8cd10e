"""Equal queries with windows become one execution, on the whole platform, and nothing is missing.

The second query is added while records flow. Its output moves to the execution of the first one, is
stopped, goes on with a copy of the state, and moves again. Then the first query ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from deploy.runtime import Runtime
from deploy.scenario.person import Person
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions
from tests.integration.flowing import Flow, Reader, Typist, await_that

pytestmark = pytest.mark.long
FIRST, SECOND = "first", "second"
WINDOWS = (
    "SELECT window_end, stream, MIN(n) AS low, MAX(n) AS high, COUNT(*) AS many FROM one "
    "GROUP BY TUMBLE(ts, INTERVAL '2' SECOND), stream"
)
# Three minutes until the turn, and half a minute until what an execution counts is known.
MOVE_S = 420.0
SOME = 400


@dataclass
class Place:
    """A platform with a stream to which records flow, and a query over it."""

    admin: Person
    flow: Flow
    readers: dict[str, Reader]

    def add(self, name: str) -> Reader:
        """Add the query, and read its results."""
        self.admin.run("query", "add", name, "-", "--language", "sql", text=WINDOWS)
        self.readers[name] = Reader.begin(self.admin, name)
        await_that(self.readers[name].is_fed, f"{name} is fed")
        return self.readers[name]

    def await_sharing(self, count: int) -> None:
        """Wait until so many outputs share one execution, and no other execution has any."""

        def shared() -> bool:
            rows = self.admin.ask("execution", "list")
            return len({row["run"] for row in rows}) == 1 and rows[0]["sharing"] == count

        await_that(shared, f"{count} outputs share an execution", MOVE_S)

    def await_more(self, *names: str) -> int:
        """Wait until results of what is sent from now on have come; the number then."""
        sent = self.flow.count("one")
        await_that(lambda: self.flow.count("one") > sent + SOME, "records flow")
        for name in names:
            await_that(partial(self._is_behind, name, sent), f"more of {name}")
        return sent

    def _is_behind(self, name: str, sent: int) -> bool:
        return max(self.readers[name].numbers("one"), default=0) > sent

    def close(self) -> None:
        """Stop to send and to read."""
        self.flow.close()
        for reader in self.readers.values():
            reader.listener.close()


@pytest.fixture
def place(runtime: Runtime, tmp_path: Path) -> Iterator[Place]:
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with Stack(options, runtime) as stack:
        admin = Typist.administrator(stack)
        admin.run("schema", "add", "s", "ts:timestamp!", "stream:string!", "n:bigint!")
        timed = ("--event-time", "ts", "--max-ahead", "1s")
        admin.run("stream", "add", "one", "--schema", "s", *timed)
        for permission in ("SEND", "READ TUPLE"):
            admin.run("grant", "ADMIN", permission, "stream", "one")
        folder = admin.folder / "sender-one"
        admin.run("sender", "one", "--dir", str(folder))
        made = Place(admin, Flow({"one": folder}), {})
        try:
            made.add(FIRST)
            made.flow.start()
            yield made
        finally:
            made.close()


def test_an_output_moves_stops_comes_back_and_is_the_last(place: Place) -> None:
    first = place.readers[FIRST]
    place.await_more(FIRST)
    second = place.add(SECOND)
    begins = place.await_more(FIRST, SECOND)
    place.await_sharing(2)
    place.await_more(FIRST, SECOND)

    place.admin.run("query", "stop", SECOND)
    place.await_more(FIRST)
    place.admin.run("query", "start", SECOND)
    place.await_more(FIRST, SECOND)
    place.await_sharing(2)
    place.await_more(FIRST, SECOND)

    place.admin.run("query", "remove", FIRST)
    ends = place.await_more(SECOND)
    numbers = second.numbers("one")
    assert numbers >= set(range(begins, ends)), "no window is missing, and none has a hole"
    assert min(numbers) > 0, "none is from before the query was added"
    assert first.numbers("one") >= set(range(begins))
    for reader in (first, second):
        came = Counter(each.id for each in tuple(reader.arrivals))
        values = {each.id: json.dumps(each.value) for each in tuple(reader.arrivals)}
        assert set(came.values()) == {1}, "each result comes once"
        assert len(set(values.values())) == len(values)
    ids = [{each.id for each in tuple(reader.arrivals)} for reader in (first, second)]
    assert not ids[0] & ids[1]
