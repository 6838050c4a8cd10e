"""The runner over queries that do as they are told: what runs becomes what is wanted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import InvalidInput, Unavailable
from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream, Run, RunReport, fingerprint, topics_of
from catalog.schema import Attribute, Schema, Type
from secfilter.background import Task
from secfilter.kafka_options import Offsets
from secfilter.newcomers import topics_read
from secfilter.pace import Pace
from secfilter.runner import STARTS_AT_ONCE, Runner
from secfilter.supervised import LONG_START_S
from secfilter.with_side import Starts
from tests.senders import sent

# A stop waits for 40 seconds.
PACE = Pace(query_ms=28_000, ingest_ms=28_000, settle_ms=120_000)
SCHEMA = Schema((Attribute("a", Type.STRING),))


def run_of(name: str, size: int = 1, *streams: str) -> IngestRun:
    relations = [
        Relation(number, stream, RelationKind.STREAM, SCHEMA, None, 0)
        for number, stream in enumerate(streams or ("s",))
    ]
    ingested = (sent(IngestStream(r, Label.of(0), 1, size, partitions=1)) for r in relations)
    return IngestRun(name, tuple(ingested))


@dataclass
class FakeQuery:
    run: Run
    asked: bool = False
    killed: bool = False
    over: bool = False
    error: BaseException | None = None
    boundary: bool = True
    hurried: bool = False
    began: Offsets = field(default_factory=dict)
    stuck: bool = False
    counts: Mapping[str, int] = field(default_factory=lambda: {"late": 3})

    def ended(self) -> bool:
        return self.over or self.killed or (self.asked and self.boundary)

    def failure(self) -> BaseException | None:
        return self.error

    def request_stop(self) -> None:
        self.asked = True

    def stop(self) -> None:
        if self.stuck:
            raise TimeoutError("the query's thread did not end")
        self.killed = True

    def withheld(self) -> Mapping[str, int]:
        counts, self.counts = self.counts, {}
        return counts


@dataclass
class NoSides:
    """No side run was ever begun."""

    queries: Sequence[FakeQuery]

    def unfinished(self, name: str) -> frozenset[str]:
        return frozenset()

    def reached(self, name: str) -> Offsets:
        return {}

    def finish(self, name: str) -> None:
        raise AssertionError("none was begun")

    def held(self, name: str) -> frozenset[str]:
        """A run goes on in what it has read once."""
        own = [query.run for query in self.queries if query.run.name == name]
        return frozenset().union(*(topics_read(run) for run in own))


@dataclass
class Bench:
    """A runner with hands on its clock, its catalog and its queries."""

    wanted: Sequence[Run] | Exception = ()
    refuse: Exception | None = None
    lengthens: bool = True
    away: bool = False
    applications: int = 0
    slow: bool = False
    held: list[Task[Any]] = field(default_factory=list)
    broken: Mapping[str, str] = field(default_factory=dict)
    faults_told: list[Mapping[str, str]] = field(default_factory=list)
    beats: int = 0
    used: dict[str, frozenset[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    now: float = 100.0
    queries: list[FakeQuery] = field(default_factory=list)
    told: list[tuple[str, str, str]] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sides = NoSides(self.queries)
        starts = Starts(self.start, lambda run: self.start(run, settled=True), sides)
        self.runner = Runner(self, starts, Watch(self), lambda: self.now, PACE, self.begin)

    def begin(self, name: str, task: Task[Any]) -> None:
        """Do it at once, or where that takes long, when `let_go` is called."""
        self.held.append(task)
        if not self.slow:
            self.let_go()

    def let_go(self) -> None:
        for task in self.held:
            task.do()
        self.held = []

    def runs(self) -> Sequence[Run]:
        if isinstance(self.wanted, Exception):
            raise self.wanted
        return self.wanted

    def report(self, report: RunReport) -> None:
        self.write()
        self.told.append((report.name, report.state, report.message))
        self.marks[report.name] = report.fingerprint
        self.used[report.name] = report.topics
        self.counts.update({f"{report.name} {kind}": n for kind, n in report.counted.items()})

    def applied(self) -> None:
        self.write()
        self.applications += 1

    def faults(self, faults: Mapping[str, str]) -> None:
        self.write()
        self.faults_told.append(faults)

    def beat(self) -> None:
        self.write()
        self.beats += 1

    def write(self) -> None:
        if self.away:
            raise Unavailable("the database is away")

    def start(self, run: Run, settled: bool) -> FakeQuery:
        if self.refuse is not None:
            raise self.refuse
        self.queries.append(FakeQuery(run, hurried=self.lengthens and not settled))
        return self.queries[-1]

    def step(self, seconds: float = 0.2) -> None:
        self.now += seconds
        self.runner.step()

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(name, state) for name, state, _ in self.told]


@dataclass
class Watch:
    """Finds what the bench says is broken."""

    bench: Bench

    def faults(self, runs: Sequence[Run]) -> Mapping[str, str]:
        return self.bench.broken


def test_wanted_runs_start_and_unwanted_ones_stop() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    assert sorted(bench.states) == sorted((n, s) for n in "ab" for s in ("starting", "running"))
    bench.wanted = (run_of("b"),)
    bench.step()
    bench.step()
    assert bench.told[-1] == ("a", "stopped", "")
    assert [q.killed for q in bench.queries] == [False, False]


def test_a_changed_run_restarts_at_its_batchs_end() -> None:
    bench = Bench((run_of("a", 1),))
    bench.step()
    bench.queries[0].boundary = False
    bench.wanted = (run_of("a", 2),)
    bench.step()
    bench.step()
    assert bench.queries[0].asked and len(bench.queries) == 1
    bench.queries[0].boundary = True
    bench.step()
    assert len(bench.queries) == 2
    assert bench.marks["a"] == fingerprint(run_of("a", 2))


def test_a_run_that_has_settled_is_started_once_more_with_longer_batches() -> None:
    bench = Bench((run_of("a", 1),))
    bench.step()
    bench.step(100)
    bench.wanted = (run_of("a", 2),)
    bench.step()
    bench.step()
    assert [q.hurried for q in bench.queries] == [True, True]
    bench.step(PACE.settle_s("a") - 1)
    assert not bench.queries[-1].asked, "it counts from the change"
    bench.queries[-1].boundary = False
    bench.step(1)
    bench.step()
    assert bench.queries[-1].asked and len(bench.queries) == 2, "it ends with its batch"
    bench.queries[-1].boundary = True
    bench.step()
    assert [q.hurried for q in bench.queries] == [True, True, False]
    bench.step(1_000)
    assert len(bench.queries) == 3 and bench.told[-1][:2] == ("a", "running")
    bench.queries[-1].over, bench.queries[-1].error = True, ValueError()
    bench.step(2)
    bench.step(2)
    assert [q.hurried for q in bench.queries] == [True, True, False, False], "it has not changed"


def test_a_run_whose_batches_stay_as_they_are_goes_on_when_it_has_settled() -> None:
    bench = Bench((run_of("a"),), lengthens=False)
    bench.step()
    bench.step(1_000)
    assert len(bench.queries) == 1 and not bench.queries[0].asked


def test_a_batch_that_does_not_end_is_broken_off() -> None:
    bench = Bench((run_of("a"),))
    bench.step()
    bench.queries[0].boundary = False
    bench.wanted = ()
    bench.step()
    bench.step(41)
    assert bench.queries[0].killed


def test_a_query_that_will_not_end_is_in_nobodys_way() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    bench.queries[0].boundary, bench.queries[0].stuck = False, True
    bench.wanted = (run_of("c"),)
    for _ in range(3):
        bench.step(41)
    other = bench.queries[1].run.name
    assert {other: "stopped", "c": "running"}.items() <= dict(bench.states).items()
    bench.queries[0].stuck = False
    bench.step(41)
    assert bench.queries[0].killed, "it is tried again"


def test_the_end_breaks_off_what_does_not_end_and_all_else() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    for query in bench.queries:
        query.boundary = False
    bench.queries[0].stuck = True
    times = iter((200.0, 200.0, 500.0))
    bench.runner._clock = lambda: next(times, 500.0)
    bench.runner.end()
    assert bench.queries[1].killed


def test_crashes_are_answered_later_and_later_and_by_nobody_else() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    started = []
    for _ in range(6):
        failing = next(q for q in reversed(bench.queries) if q.run.name == "a")
        failing.over, failing.error = True, ValueError("secret value")
        count, began = len(bench.queries), bench.now
        while len(bench.queries) == count:
            bench.step()
        started.append(bench.now - began)
    assert started == sorted(started) and started[0] < 2 and 15 < started[-1] < 61
    assert ("a", "failed") in bench.states and ("a", "restarting") in bench.states
    assert not any("secret" in message for *_, message in bench.told)
    assert [q.run.name for q in bench.queries].count("b") == 1


def test_a_run_that_cannot_start_tells_why_and_starts_when_it_has_changed() -> None:
    bench = Bench((run_of("a"),), InvalidInput("rename it"))
    bench.step()
    assert bench.told[-1] == ("a", "restarting", "rename it")
    for _ in range(4):
        bench.step(100)
    assert bench.told[-1][1] == "failed"
    bench.refuse, bench.wanted = None, (run_of("a", 2),)
    bench.step()
    assert bench.told[-1][:2] == ("a", "running")


def test_while_the_catalog_is_away_everything_goes_on() -> None:
    bench = Bench((run_of("a"),))
    bench.step()
    bench.wanted = Unavailable("the database is away")
    bench.step(5)
    assert not bench.queries[0].asked
    assert bench.told[-1] == ("a", "running", "") and bench.counts == {"a late": 3}


def test_what_could_not_be_reported_is_reported_later() -> None:
    bench = Bench((run_of("b"),), away=True)
    bench.step()
    bench.wanted = (run_of("a"), run_of("b"))
    bench.step()
    bench.wanted = (run_of("a", 2), run_of("b"))
    bench.step()
    bench.step()
    other, first, second = bench.queries
    assert (first.asked, second.run) == (True, run_of("a", 2)), "what has changed starts anew"
    second.over, second.error = True, ValueError()
    bench.step(2)
    bench.step(2)
    *_, third = bench.queries
    assert third.run == second.run and third is not second, "a crash is answered all the same"
    assert not any(query.asked or query.killed for query in (other, third))
    assert (bench.told, bench.applications, bench.beats) == ([], 0, 0)
    bench.away = False
    bench.step(2)
    assert sorted(bench.told) == [("a", "running", ""), ("b", "running", "")]
    assert bench.counts == {"a late": 9, "b late": 3}, "what was withheld meanwhile is added"
    assert bench.marks["a"] == fingerprint(run_of("a", 2))
    assert bench.applications == 1


def test_the_end_stops_everything_at_batch_ends() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    bench.runner.end()
    assert {s for _, s in bench.states[-2:]} == {"stopped"}
    assert all(q.asked and not q.killed for q in bench.queries)


def test_a_start_that_hangs_is_in_nobodys_way() -> None:
    bench = Bench((run_of("a"),), slow=True)
    bench.step()
    assert bench.told == [("a", "starting", "")]
    hanging, bench.held, bench.slow = bench.held, [], False
    bench.wanted = (run_of("a"), run_of("b"))
    bench.step()
    assert ("b", "running", "") in bench.told
    bench.step(LONG_START_S)
    bench.step()
    assert ("a", "starting", "its start takes long") in bench.told
    bench.held = hanging
    bench.let_go()
    bench.step()
    assert bench.told[-1] == ("a", "running", "")


def test_what_was_removed_while_it_started_is_ended_when_its_start_returns() -> None:
    bench = Bench((run_of("a"),), slow=True)
    bench.step()
    bench.wanted = ()
    bench.step()
    assert bench.used["a"] == topics_of(run_of("a")), "its start may be reading them"
    bench.slow = False
    bench.let_go()
    bench.step()
    assert bench.queries[0].asked
    bench.step(2)
    assert bench.told[-1] == ("a", "stopped", "") and bench.used["a"] == frozenset()


def test_so_many_start_at_once_but_none_waits_for_those_that_hang() -> None:
    bench = Bench([run_of(f"r{n}") for n in range(STARTS_AT_ONCE + 1)], slow=True)
    bench.step()
    assert len(bench.held) == STARTS_AT_ONCE
    bench.step(LONG_START_S + 1)
    assert len(bench.held) == STARTS_AT_ONCE + 1


def test_a_stop_that_hangs_is_in_nobodys_way() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    for query in bench.queries:
        query.boundary = False
    bench.wanted, bench.slow = (run_of("b", 2),), True
    bench.step()
    bench.step(41)
    bench.slow, held = False, bench.held
    assert len(held) == 2, "each is asked once, in the background"
    bench.let_go()
    bench.step(41)
    bench.step(2)
    assert all(query.killed for query in bench.queries[:2])


def test_a_run_that_cannot_end_keeps_its_own_topics_alone() -> None:
    bench = Bench((run_of("a", 1, "s1"), run_of("b", 1, "s2")))
    bench.step()
    stuck = next(query for query in bench.queries if query.run.name == "a")
    stuck.boundary, stuck.stuck = False, True
    before = bench.applications
    bench.wanted = ()
    for _ in range(3):
        bench.step(41)
    assert bench.applications > before, "nobody waits for it"
    assert bench.used == {"a": topics_of(run_of("a", 1, "s1")), "b": frozenset()}
    stuck.stuck = False
    bench.step(41)
    bench.step(2)
    assert bench.used["a"] == frozenset()


def test_what_a_run_uses_is_told_before_it_starts() -> None:
    bench = Bench((run_of("a"),), slow=True, away=True)
    bench.step()
    assert bench.applications == 0
    bench.away = False
    bench.step()
    assert bench.used["a"] == topics_of(run_of("a")) and bench.applications == 1


def test_a_stream_whose_topic_is_broken_leaves_its_group_alone() -> None:
    bench = Bench((run_of("a", 1, "s1", "s2"), run_of("b", 1, "s3")))
    bench.step()
    group = next(query for query in bench.queries if query.run.name == "a")
    group.boundary = False
    bench.broken = {"lab.s1": "gone"}
    bench.step()
    bench.step(3)
    assert group.killed, "its writer hangs, so its batch is not waited for"
    bench.step(2)
    assert bench.faults_told[-1] == {"lab.s1": "gone"}
    spared = bench.queries[-1].run
    assert isinstance(spared, IngestRun)
    assert [s.relation.name for s in spared.streams] == ["s2"]
    assert not any(q.asked for q in bench.queries if q.run.name == "b")
    bench.broken = {}
    bench.step()
    bench.step(2)
    assert bench.queries[-1].run == run_of("a", 1, "s1", "s2"), "it is taken in again"
    assert bench.faults_told[-1] == {}


def test_the_runner_beats_while_it_looks() -> None:
    bench = Bench()
    for _ in range(50):
        bench.step()
    assert 4 <= bench.beats <= 6
