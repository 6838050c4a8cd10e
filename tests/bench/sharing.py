"""What a second equal query costs (000: user-level sharing), beside one that is not equal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from tests.bench import backlog
from tests.bench.backlog import Backlog, Ends
from tests.bench.figure import Figure, middle
from tests.bench.process_group import ProcessGroup
from tests.bench.settled import SETTLED_S
from tests.bench.world import World

STREAM = "shared"
RECORDS, WARM_UP, RUNS = 400_000, 5, 5
_PATIENCE_S = 600.0
_SELECT = f"SELECT ts, symbol, venue, price * quantity AS amount FROM {STREAM}"
_AT_LEAST = backlog.threshold(0)
# The same query, written in another way; and one that differs in a condition that is always true.
QUERIES = {
    "first": f"{_SELECT} WHERE quantity > {_AT_LEAST} AND price > 0",
    "equal": f"{_SELECT} WHERE price > 0 AND {_AT_LEAST} < quantity",
    "other": f"{_SELECT} WHERE quantity > {_AT_LEAST} AND price > -1",
}


def sharing(world: World) -> Iterator[Figure]:
    """CPU of ingest and the query engines for one query, for two equal ones, and for two others."""
    world.admin.post("/schemas", name="shared_trade", attributes=backlog.ATTRIBUTES)
    world.add_stream(STREAM, "shared_trade")
    world.grant("ADMIN", "stream", STREAM, "READ TUPLE")
    producer, topic = world.sender(STREAM, linger_ms=20)
    settings = world.stack.settings.kafka
    ends = Ends(settings.client_config(settings.secadmin))
    bench = _Bench(world, Backlog(producer, topic), ends)
    alone = bench.with_queries("first")
    equal = bench.with_queries("first", "equal")
    others = bench.with_queries("first", "other")
    ends.close()
    yield _ratio("CPU of two equal queries ÷ one", equal, alone)
    yield _ratio("CPU of two queries that are not equal ÷ one", others, alone)


def _ratio(name: str, ours: Sequence[float], alone: Sequence[float]) -> Figure:
    return middle(name, [a / b for a, b in zip(ours, alone, strict=True)], "ratio")


class _Bench:
    def __init__(self, world: World, records: Backlog, ends: Ends) -> None:
        self._world, self._backlog, self._ends = world, records, ends
        self._topics: dict[str, str] = {}

    def with_queries(self, *names: str) -> list[float]:
        """The CPU seconds that each of several equal backlogs takes with these queries."""
        for name in self._topics.keys() - set(names):
            self._world.remove_query(name)
            del self._topics[name]
        for name in names:
            if name not in self._topics:
                self._world.add_query(name, QUERIES[name])
                self._topics[name] = self._world.topic_of_new_class(name)
        self._world.admin.wait_until_fed()
        time.sleep(SETTLED_S)
        group = self._world.engine_group()
        return [self._spent(group) for _ in range(WARM_UP + RUNS)][WARM_UP:]

    def _spent(self, group: ProcessGroup) -> float:
        group.pause()
        self._backlog.write(RECORDS)
        topics = list(self._topics.values())
        more = self._backlog.passing(RECORDS, 0)
        goal = [end + more for end in self._ends.of(topics)]
        before, deadline = group.cpu_s(), time.monotonic() + _PATIENCE_S
        group.go_on()
        while any(now < end for now, end in zip(self._ends.of(topics), goal, strict=True)):
            if time.monotonic() > deadline:
                raise TimeoutError("the backlog was not worked through")
            time.sleep(0.01)
        return group.cpu_s() - before
