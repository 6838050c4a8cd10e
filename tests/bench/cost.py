"""What security costs: the platform beside plain Spark jobs that read the same JSON topic.

Both are warm and work through the same backlog one after the other, each while the other is
suspended. CPU seconds are those of all processes of the runner, or of the plain jobs' driver; the
broker's, which serves both, are told beside them. Plain jobs run under Spark's default trigger and
with the sink's and the checkpoints' default settings, as people run them, and once more under the
real-time trigger that the platform uses.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient, NewTopic

from catalog.topics import lab_topic
from tests.bench import backlog
from tests.bench.backlog import Backlog, Ends, plain_topic
from tests.bench.figure import Figure, middle
from tests.bench.plain_jobs import PlainJobs
from tests.bench.process_group import ProcessGroup
from tests.bench.settled import SETTLED_S
from tests.bench.world import World, until

STREAM = "cost"
# Number of queries -> the most that the platform may cost, as a multiple of so many plain jobs.
TARGETS = {1: 1.7, 4: 1.0, 16: 0.7}
# As many for each number of queries: what a batch costs before its first record weighs the same.
RECORDS = 400_000
# Java goes on compiling for millions of records; what came before counts for more queries, too.
WARM_UP = {1: 10, 4: 2, 16: 1}
RUNS = 5
# What a started query costs before it reads is none of its cost a record.
_BEGUN = 0.2
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What a backlog of `records` took."""

    records: float
    cpu_s: float
    broker_s: float
    wall_s: float

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a record, which is CPU seconds a million records."""
        return self.cpu_s / self.records * 1e6

    @property
    def broker_us(self) -> float:
        """The same of the broker."""
        return self.broker_s / self.records * 1e6

    @property
    def all_us(self) -> float:
        """Both together."""
        return self.cpu_us + self.broker_us

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.wall_s


def cost(world: World) -> Iterator[Figure]:
    """CPU seconds a million records and records a second, platform and plain, in one run."""
    with _bench(world) as bench:
        for count in TARGETS:
            yield from bench.beside_plain_jobs(count)
        yield from bench.parts()


@contextmanager
def _bench(world: World) -> Iterator[_Bench]:
    world.admin.post("/schemas", name=backlog.SCHEMA, attributes=backlog.ATTRIBUTES)
    world.add_stream(STREAM, backlog.SCHEMA)
    world.grant("ADMIN", "stream", STREAM, "READ TUPLE")
    producer, topic = world.sender(STREAM, linger_ms=20)
    settings = world.stack.settings.kafka
    config = settings.client_config(settings.secadmin)
    admin = AdminClient({**config, "log_level": 3})
    made = admin.create_topics([NewTopic(plain_topic(i), 1, 1) for i in range(max(TARGETS))])
    for future in made.values():
        future.result()
    ends = Ends(config)
    with PlainJobs(world.stack, topic) as plain:
        bench = _Bench(world, Backlog(producer, topic), ends, plain)
        try:
            yield bench
        finally:
            bench.runner.go_on()
            ends.close()


class _Bench:
    """The platform's engines and the plain jobs' driver, one of which works at a time."""

    def __init__(self, world: World, records: Backlog, ends: Ends, plain: PlainJobs) -> None:
        self._world, self._backlog, self._ends, self._plain = world, records, ends, plain
        self.runner = world.engine_group()
        self._broker = ProcessGroup(world.pid("broker"))
        self._topics: list[str] = []

    def beside_plain_jobs(self, count: int) -> Iterator[Figure]:
        """`count` queries beside as many plain jobs."""
        self._add_queries(count)
        self._plain.run(count, "default")
        pairs = [self._both(RECORDS) for _ in range(WARM_UP[count] + RUNS)][WARM_UP[count] :]
        ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        many = f"{count} {'query' if count == 1 else 'queries'}"
        yield from _figures(f"{many} with ingest and SecFilter", ours)
        yield from _figures(f"{count} plain Spark {'job' if count == 1 else 'jobs'}", theirs)
        ratio = f"CPU of the platform with {many} ÷ plain jobs"
        yield _ratio(ratio, pairs, TARGETS[count])
        with_broker = [ours.all_us / theirs.all_us for ours, theirs in pairs]
        yield middle(f"{ratio}, the broker's with either", with_broker, "ratio")

    def parts(self) -> Iterator[Figure]:
        """Ingest alone and one secured query alone, beside one plain job."""
        self._keep_one_query()
        for trigger in ("default", "realtime"):
            self._plain.run(1, trigger)
            runs = [self._apart(RECORDS) for _ in range(1 + RUNS)][1:]
            pairs = [(query, plain) for _, query, plain in runs]
            if trigger == "default":
                yield from _figures("ingest alone", [ingest for ingest, _, _ in runs])
                yield from _figures("one secured query alone", [query for query, _ in pairs])
                yield _ratio("CPU of one secured query alone ÷ one plain job", pairs, 1.0)
            else:
                yield from _figures("one plain job, real-time trigger", [p for _, p in pairs])
                yield _ratio("CPU of one secured query alone ÷ one plain real-time job", pairs)

    def _add_queries(self, count: int) -> None:
        for number in range(len(self._topics), count):
            name, at_least = _query(number), backlog.threshold(number)
            self._world.add_query(
                name,
                "SELECT ts, symbol, venue, price * quantity AS amount"
                f" FROM {STREAM} WHERE quantity > {at_least}",
            )
            self._topics.append(self._world.topic_of_new_class(name))
        self._world.admin.wait_until_fed()
        time.sleep(SETTLED_S)

    def _keep_one_query(self) -> None:
        others = range(1, len(self._topics))
        for number in others:
            self._world.admin.post(f"/queries/{_query(number)}/stop")
        until(lambda: all(self._state(number) == "stopped" for number in others), "to stop")
        self._topics = self._topics[:1]

    def _both(self, count: int) -> tuple[Spent, Spent]:
        """The same backlog for the platform, then for the plain jobs."""
        self._write(count)
        ours = self._spent(self.runner, count, self._results(self._topics, count))
        plain = [plain_topic(number) for number in range(len(self._topics))]
        with self._runner_paused():
            return ours, self._spent(self._plain.group, count, self._results(plain, count))

    def _apart(self, count: int) -> tuple[Spent, Spent, Spent]:
        """A backlog for ingest, then what it made for the query, then as much for a plain job."""
        self._world.admin.post(f"/queries/{_query(0)}/stop")
        until(lambda: self._state(0) == "stopped", "to stop")
        self._write(count)
        lab = {lab_topic(STREAM): count}
        ingest = self._spent(self.runner, count, self._later(lab))
        self._world.admin.post(f"/queries/{_query(0)}/start")
        results = self._results(self._topics, count)
        query = self._spent(self.runner, count, results, begun=_BEGUN)
        results = self._results([plain_topic(0)], count)
        # The job has run before, but what is not counted of the one is not counted of the other.
        with self._runner_paused():
            plain = self._spent(self._plain.group, count, results, begun=_BEGUN)
        return ingest, query, plain

    @contextmanager
    def _runner_paused(self) -> Iterator[None]:
        self.runner.pause()
        try:
            yield
        finally:
            self.runner.go_on()

    def _write(self, count: int) -> None:
        """Write while nobody reads; the results until now are the beginning of what is counted."""
        for group in (self.runner, self._plain.group):
            group.pause()
        self._backlog.write(count)

    def _state(self, number: int) -> str:
        found: str = self._world.admin.call("GET", f"/queries/{_query(number)}")["state"]
        return found

    def _results(self, topics: Sequence[str], count: int) -> dict[str, int]:
        passing = {topic: self._backlog.passing(count, i) for i, topic in enumerate(topics)}
        return self._later(passing)

    def _later(self, more: dict[str, int]) -> dict[str, int]:
        """The end offsets at which so many more records will be there."""
        return {topic: end + more[topic] for topic, end in self._at(more).items()}

    def _spent(
        self, group: ProcessGroup, count: int, goal: Mapping[str, int], begun: float = 0.0
    ) -> Spent:
        """Let the group work until `goal` is reached, and say what it took.

        The first part of the way, up to the share `begun`, is not counted.
        """
        start = self._at(goal)
        before, done = self._now(group), 0.0
        group.go_on()
        if begun:
            self._await({t: start[t] + int(begun * (end - start[t])) for t, end in goal.items()})
            before, now = self._now(group), self._at(goal)
            done = min((now[t] - start[t]) / (end - start[t]) for t, end in goal.items())
        self._await(goal)
        after = self._now(group)
        cpu_s, broker_s, wall_s = (b - a for a, b in zip(before, after, strict=True))
        return Spent(count * (1 - done), cpu_s, broker_s, wall_s)

    def _await(self, goal: Mapping[str, int]) -> None:
        left, deadline = dict(goal), time.monotonic() + _PATIENCE_S
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not worked through: {left}")
            now = self._at(left)
            left = {topic: end for topic, end in left.items() if now[topic] < end}
            time.sleep(0.01)

    def _at(self, topics: Iterable[str]) -> dict[str, int]:
        names = list(topics)
        return dict(zip(names, self._ends.of(names), strict=True))

    def _now(self, group: ProcessGroup) -> tuple[float, float, float]:
        return group.cpu_s(), self._broker.cpu_s(), time.monotonic()


def _query(number: int) -> str:
    return f"cost{number}"


def _figures(name: str, runs: Sequence[Spent]) -> list[Figure]:
    unit = "s/million"
    return [
        middle(f"{name}: CPU", [spent.cpu_us for spent in runs], unit),
        middle(f"{name}: CPU of the broker", [spent.broker_us for spent in runs], unit),
        middle(f"{name}: at saturation", [spent.rate for spent in runs], "records/s"),
    ]


def _ratio(name: str, pairs: Sequence[tuple[Spent, Spent]], target: float | None = None) -> Figure:
    ratios = [ours.cpu_us / plain.cpu_us for ours, plain in pairs]
    return middle(name, ratios, "ratio", target)
