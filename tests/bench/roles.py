"""What roles cost: sharing by users and by roles, views, the windowed join, role expressions (000).

CPU seconds are those of the engines, for equal backlogs that they work through one after the other.
They tell what a query costs beside one without security, which reads a public stream. What is a
query's is that of the engines that run queries; to decide each record's roles is work of ingest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import combinations
from typing import Any

from confluent_kafka import Producer

from catalog.engines import INGEST
from catalog.role_expression import read_role_expression
from secfilter.pace import Pace
from tests.bench.backlog import Ends
from tests.bench.figure import Figure, middle
from tests.bench.process_group import ProcessGroup
from tests.bench.world import PASSWORD, World

ROLES = [f"WARD{number}" for number in range(16)]
# Each role has a sixteenth of the records.
RECORDS, WARM_UP, RUNS = 400_000, 3, 6
JOINED, JOIN_S = 1_000_000, 60.0
EXPRESSED, EXPRESSIONS, EXPRESSED_RUNS = 20_000, 1_000, 3
# Runs are settled soon after a change here, so that all are measured with the same batches.
_SETTLE_MS, _SETTLED_S = 1_000, 20.0
# Of the last records a query that keeps state gives nothing yet.
_NEARLY_ALL = 0.99
_PATIENCE_S = 900.0
_START = datetime(2026, 11, 20, tzinfo=UTC)
_PLAIN, _ALONE = "without security", "one user with all roles"
_EQUAL, _THREE = "five users with equal roles", "three sets of roles"
_EACH = "16 roles on one execution"
_READERS: Mapping[str, Sequence[Sequence[str]]] = {
    _ALONE: [ROLES],
    _EQUAL: [ROLES] * 5,
    _THREE: [ROLES[:5], ROLES[5:10], ROLES[10:]],
    _EACH: [[role] for role in ROLES],
}
_RULE = " ".join(f"WHEN n % {len(ROLES)} = {at} THEN '{role}'" for at, role in enumerate(ROLES))


def roles(world: World) -> Iterator[Figure]:
    """All figures of paper 000's section 7, and what the number of expressions costs."""
    for role in ROLES:
        world.admin.post("/roles", name=role)
        world.grant(role, "system", "system", "VIEW CATALOG")
    world.set_options(settle_ms=_SETTLE_MS)
    settings = world.stack.settings.kafka
    ends = Ends(settings.client_config(settings.secadmin))
    yield from _sharing(world, ends)
    yield from _selectivity(world, ends)
    yield from _expressions(world, ends)
    yield _join(world, ends)
    ends.close()
    world.set_options(settle_ms=Pace().settle_ms)


def _say(text: str) -> None:
    print(f"roles: {text}", file=sys.stderr, flush=True)


class _Records:
    """Writes records into a stream, in the order of their times, each a millisecond later."""

    def __init__(self, world: World, stream: str, **more: Any) -> None:
        world.add_stream(stream, **more)
        self._producer, self._topic = world.sender(stream, linger_ms=20)
        self._number = 0

    def write(self, count: int, expressions: Sequence[str] = ()) -> None:
        """Write so many records and wait for them. Each has one of the expressions, in turn."""
        producer: Producer = self._producer
        for number in range(self._number, self._number + count):
            at = (_START + timedelta(milliseconds=number)).isoformat()[:-6]
            value = f'{{"ts":"{at}Z","n":{number},"sent":0}}'.encode()
            if expressions:
                text = expressions[number % len(expressions)].encode()
                producer.produce(self._topic, value, headers=[("roles", text)])
            else:
                producer.produce(self._topic, value)
            if number % 10_000 == 0:
                # The client's own queue holds 100,000.
                producer.flush()
        producer.flush()
        self._number += count


@dataclass(frozen=True)
class _Spent:
    """The CPU seconds that a backlog took: of the engines for queries, and of all engines."""

    queries: float
    all: float


class _Shared:
    """A query with its readers, over a stream of its own: one role for each record, or public.

    Each reader has some of the roles, and each role a sixteenth of the records. A query that keeps
    state gives nothing of the last ones yet (`state`).
    """

    def __init__(
        self,
        world: World,
        ends: Ends,
        stream: str,
        text: str,
        readers: Sequence[Sequence[str]],
        *,
        public: bool = False,
        state: bool = False,
    ) -> None:
        self._world, self._ends, self._name = world, ends, f"{stream}_query"
        self._part = _NEARLY_ALL if state else 1.0
        more = {"public": True} if public else {"label_rule": f"CASE {_RULE} END"}
        self._records = _Records(world, stream, **more)
        for role in () if public else ROLES:
            world.grant(role, "stream", stream, "READ TUPLE")
        world.add_query(self._name, text.format(stream))
        # How many roles' records come to each topic.
        self._topics: dict[str, int] = {}
        for held in readers:
            shown = len(ROLES) if public else len(held)
            self._topics |= dict.fromkeys(self._topics_of(held), shown)

    def spent(self) -> _Spent:
        """What one more backlog takes, from when the engines may begin."""
        group, queries = self._world.engine_group(), _query_engines(self._world)
        before = self._ends.of([*self._topics])
        group.pause()
        self._records.write(RECORDS)
        goal = [
            end + int(self._part * RECORDS * held / len(ROLES))
            for end, held in zip(before, self._topics.values(), strict=True)
        ]
        used, of_queries = group.cpu_s(), queries.cpu_s()
        group.go_on()
        _wait(self._ends, [*self._topics], goal)
        return _Spent(queries.cpu_s() - of_queries, group.cpu_s() - used)

    def _topics_of(self, held: Sequence[str]) -> Sequence[str]:
        """The topics of a new reader with these roles, once they are fed."""
        self._world.grant(held[0], "output", self._name, "VIEW OBJECT", "SUBSCRIBE")
        reader = self._world.new_user(held[0])
        for role in held[1:]:
            self._world.admin.post(f"/users/{reader.user}/roles", role=role)
        reader = self._world.log_in(reader.user, PASSWORD)
        reader.post(f"/outputs/{self._name}/subscriptions")
        reader.wait_until_fed()
        (row,) = reader.call("GET", "/accesses")
        found: Sequence[str] = row["topics"]
        return found


def _alternately(shared: Mapping[str, _Shared]) -> Mapping[str, Sequence[_Spent]]:
    """What equal backlogs take: each query has one in turn, so all have the same slow minutes."""
    time.sleep(_SETTLED_S)
    found: dict[str, list[_Spent]] = {what: [] for what in shared}
    for number in range(WARM_UP + RUNS):
        for what, each in shared.items():
            spent = each.spent()
            _say(f"{number - WARM_UP}: {what}: {spent.queries:.2f} of {spent.all:.2f} s")
            if number >= WARM_UP:
                found[what].append(spent)
    return found


def _query_engines(world: World) -> ProcessGroup:
    """The processes of the engines that run queries."""
    engines = (process for name, process in world.stack.engines.items() if name != INGEST)
    return ProcessGroup(*(world.pid(process.name) for process in engines))


def _wait(ends: Ends, topics: Sequence[str], goal: Sequence[int]) -> None:
    _wait_for(lambda: all(now >= end for now, end in zip(ends.of(topics), goal, strict=True)))


def _wait_for(condition: Callable[[], bool], every_s: float = 0.01) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the backlog was not worked through")
        time.sleep(every_s)


def _sharing(world: World, ends: Ends) -> Iterator[Figure]:
    text = "SELECT ts, n FROM {} WHERE n >= 0"
    shared = {_PLAIN: _Shared(world, ends, "open", text, [ROLES[:1]], public=True)}
    for number, (what, readers) in enumerate(_READERS.items()):
        shared[what] = _Shared(world, ends, f"wards{number}", text, readers)
    spent = _alternately(shared)
    plain, alone = spent[_PLAIN], spent[_ALONE]
    for what, target in ((_ALONE, None), (_EQUAL, 1.01), (_THREE, 1.03), (_EACH, None)):
        yield _ratio(f"{what} ÷ {_PLAIN}", spent[what], plain, target)
        yield _ratio(f"{what} ÷ {_PLAIN}, with ingest", spent[what], plain, None, ingest=True)
    yield _ratio(f"{_EACH} ÷ {_ALONE}", spent[_EACH], alone, 1.5)
    world.clear()


def _selectivity(world: World, ends: Ends) -> Iterator[Figure]:
    text = "SEMANTICS VIEW SELECT ISTREAM n FROM {} [ROWS 1]"
    half = ROLES[: len(ROLES) // 2]
    readers = {"a view of half of the tuples": half, "a view of all tuples": ROLES}
    shared = {
        what: _Shared(world, ends, f"viewed{number}", text, [held], state=True)
        for number, (what, held) in enumerate(readers.items())
    }
    one, other = _alternately(shared).values()
    yield _ratio(" ÷ ".join(readers), one, other, 0.5)
    world.clear()


def _ratio(
    what: str,
    ours: Sequence[_Spent],
    other: Sequence[_Spent],
    target: float | None,
    *,
    ingest: bool = False,
) -> Figure:
    pairs = zip(ours, other, strict=True)
    ratios = [a.all / b.all if ingest else a.queries / b.queries for a, b in pairs]
    return middle(f"CPU of {what}", ratios, "ratio", target)


def _join(world: World, ends: Ends) -> Figure:
    """The paper's join over a million tuples of each side, from when the engines may begin."""
    _say("the windowed join")
    sides = [_Records(world, name) for name in ("joined1", "joined2")]
    world.add_query(
        "joined",
        "SELECT a.ts, a.n FROM joined1 AS a JOIN joined2 AS b ON a.n = b.n "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' SECOND",
    )
    for stream in ("joined1", "joined2"):
        world.grant("ADMIN", "stream", stream, "READ TUPLE")
    topic = world.topic_of_new_class("joined")
    world.admin.wait_until_fed()
    group = world.engine_group()
    group.pause()
    for side in sides:
        side.write(JOINED)
    started = time.monotonic()
    group.go_on()
    _wait(ends, [topic], [int(_NEARLY_ALL * JOINED)])
    took = time.monotonic() - started
    world.clear()
    return Figure(f"join of {JOINED:,} and {JOINED:,} tuples", took, "s", JOIN_S)


def _expressions(world: World, ends: Ends) -> Iterator[Figure]:
    """Records with one expression, and with a thousand that are all known and mean other things."""
    _say("many expressions")
    texts = [
        f"({one} | {two}) & {third}"
        for one, two in combinations(ROLES, 2)
        for third in ROLES
        if third not in (one, two)
    ][:EXPRESSIONS]
    assert len({read_role_expression(text) for text in texts}) == EXPRESSIONS
    records = _Records(world, "expressions", label_rule="HEADER roles")
    topics = _topics_of_all(world, ends, records, texts)
    took: dict[int, list[float]] = {1: [], EXPRESSIONS: []}
    for _ in range(EXPRESSED_RUNS):
        for count, times in took.items():
            goal = sum(ends.of(topics)) + EXPRESSED
            started = time.monotonic()
            records.write(EXPRESSED, texts[:count])
            _wait_for(partial(_have, ends, topics, goal))
            times.append(time.monotonic() - started)
    ratios = [many / one for many, one in zip(took[EXPRESSIONS], took[1], strict=True)]
    _say(f"many expressions: {took}")
    name = f"time with {EXPRESSIONS:,} expressions ÷ with one"
    yield middle(name, ratios, "ratio", 1 / 0.8)
    world.clear()


def _topics_of_all(
    world: World, ends: Ends, records: _Records, texts: Sequence[str]
) -> Sequence[str]:
    """The topics of a reader with all roles, when all these expressions have come once.

    The roles that are named first bring it topics, so its records are counted over all of them.
    """
    world.add_query("expressed", "SELECT ts, n FROM expressions")
    world.grant("ADMIN", "stream", "expressions", "READ TUPLE")
    for role in ROLES:
        world.admin.post("/users/admin/roles", role=role)
    reader = world.log_in("admin", PASSWORD)
    reader.post("/outputs/expressed/subscriptions")
    reader.wait_until_fed()
    records.write(len(texts), texts)

    def topics() -> Sequence[str]:
        rows = reader.call("GET", "/accesses")
        (found,) = (row["topics"] for row in rows if row["name"] == "expressed")
        return list(found)

    _wait_for(lambda: _have(ends, topics(), len(texts)), every_s=1)
    reader.wait_until_fed()
    return topics()


def _have(ends: Ends, topics: Sequence[str], count: int) -> bool:
    return sum(ends.of(topics)) >= count
