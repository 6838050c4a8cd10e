"""A runner over queries that do as they are told, with hands on all that it sees."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import Unavailable
from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream, Run, RunReport
from catalog.schema import Attribute, Schema, Type
from secfilter.background import Task
from secfilter.beside import has_caught_up
from secfilter.kafka_options import Offsets
from secfilter.newcomers import topics_read
from secfilter.pace import Pace
from secfilter.runner import Runner
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
    proven: int | None = None
    delivered: Offsets = field(default_factory=dict)
    boundary: bool = True
    hurried: bool = False
    began: Offsets = field(default_factory=dict)
    stuck: bool = False
    counts: Mapping[str, int] = field(default_factory=lambda: {"late": 3})

    def flows(self) -> bool:
        return True

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

    def proven_ms(self) -> int | None:
        return self.proven

    def is_through(self, ends: Offsets) -> bool:
        return has_caught_up(self.delivered, ends)


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
    turns: int = 0
    held: list[Task[Any]] = field(default_factory=list)
    broken: Mapping[str, str] = field(default_factory=dict)
    faults_told: list[Mapping[str, str]] = field(default_factory=list)
    beats: int = 0
    used: dict[str, frozenset[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    now: float = 100.0
    queries: list[FakeQuery] = field(default_factory=list)
    prepared: list[tuple[Run, bool]] = field(default_factory=list)
    told: list[tuple[str, str, str]] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sides = NoSides(self.queries)
        starts = Starts(
            *(self.start, lambda run: self.start(run, settled=True), sides, self.prepare)
        )
        self.runner = Runner(self, starts, Watch(self), lambda: self.now, PACE, self.begin)

    def prepare(self, run: Run) -> None:
        """Note what was prepared, and whether all queries still went on."""
        self.prepared.append((run, not any(query.asked for query in self.queries)))

    def turned(self) -> None:
        self.turns += 1

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
