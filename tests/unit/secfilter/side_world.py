"""A main run and its side run over a log, with hands on all that can happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun, Run, RunReport, fingerprint
from catalog.schema import Attribute, Schema, Type
from secfilter.background import Task
from secfilter.beside import fed_by, side_name
from secfilter.class_beginnings import moved_back
from secfilter.kafka_options import Offsets
from secfilter.pace import Pace
from secfilter.query_with_side import QueryWithSide
from secfilter.supervised import Means
from secfilter.with_side import Starts
from tests.plans import whole
from tests.unit.secfilter.stoppable import Stoppable

STREAM = Relation(1, "s", RelationKind.STREAM, Schema((Attribute("a", Type.STRING),)), None, 0)
PARTITIONS = ("0", "1")
# Longer than a failed start waits at most, and than a batch is waited for.
LONG_S = 100.0
NAME = "query-9"
NOWHERE: Mapping[str, Mapping[str, int]] = {}


def run_of(
    *classes: str, labelled: bool = False, made: Mapping[str, Mapping[str, int]] = NOWHERE
) -> QueryRun:
    """A run with these classes. `made` has the ends of the log when each one was made."""
    fed = tuple(
        FanOutClass(topic, Clearance.of(0), begins={"lab.s": made.get(topic, {})})
        for topic in classes
    )
    plan, reaches = whole(Source(STREAM)), {1: Label.of(0)}
    return QueryRun(NAME, plan, (FedOutput(STREAM, fed, labelled),), Label.of(0), {}, reaches)


@dataclass
class FakeQuery(Stoppable):
    """Reads the log from `began` on, and delivers to the topics of its run."""

    log: Log
    run: QueryRun
    began: Offsets
    at: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.at = dict(self.began["lab.s"])

    def flow(self, partition: str) -> None:
        """Deliver what there is in the partition."""
        if self.over or not self.planned:
            return
        for offset in range(self.at[partition], self.log.ends[partition]):
            for topic in fed_by(self.run):
                self.log.delivered.setdefault(topic, set()).add((partition, offset))
        self.at[partition] = self.log.ends[partition]

    def end_batch(self) -> None:
        """The batch ends, and what is delivered is committed; then it goes on, or it is asked."""
        if not self.over:
            if self.planned:
                self.log.committed[self.run.name] = {"lab.s": dict(self.at)}
            self.over = self.asked


@dataclass
class Log:
    """What outlives an engine: the labelled topic, what is delivered, committed and noted."""

    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    delivered: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    committed: dict[str, Offsets] = field(default_factory=dict)
    noted: frozenset[str] = frozenset()
    # What the main run has begun to feed; None before its first start.
    taken: frozenset[str] | None = None

    def unfinished(self, name: str) -> frozenset[str]:
        assert name == side_name(NAME)
        return self.noted

    def reached(self, name: str) -> Offsets:
        return self.committed.get(name, {})

    def finish(self, name: str) -> None:
        self.noted = frozenset()
        self.committed.pop(name, None)

    def held(self, name: str) -> frozenset[str]:
        raise AssertionError("only ingest asks that")


@dataclass
class World:
    """One engine after another over the same log, with hands on all that can happen."""

    log: Log = field(default_factory=Log)
    classes: tuple[str, ...] = ("first",)
    made: int = 0
    labelled: bool = False
    stands: bool = False
    slow: bool = False
    # Whether Spark plans a query at once.
    plans: bool = True
    now: float = 0.0
    held: list[Task[Any]] = field(default_factory=list)
    queries: list[FakeQuery] = field(default_factory=list)
    reports: list[RunReport] = field(default_factory=list)
    # Of each topic that was told to be fed: the ends of the log then.
    fed_from: dict[str, dict[str, int]] = field(default_factory=dict)
    # Of each class: the ends of the log when it was made.
    made_at: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begin_engine()

    def begin_engine(self) -> None:
        self.held, self.queries = [], []
        means = Means(
            *(self.start, self.report, lambda: self.now, Pace(), self.begin, lambda: True)
        )
        self.pair = QueryWithSide(NAME, means, Starts(self.start, self.start_side, self.log))

    def begin(self, _name: str, task: Task[Any]) -> None:
        self.held.append(task)
        if not self.slow:
            self.let_go()

    def let_go(self) -> None:
        for task in self.held:
            task.do()
        self.held = []

    def start(self, run: Run, _settled: bool) -> FakeQuery:
        assert isinstance(run, QueryRun)
        began = self.log.committed.setdefault(run.name, {"lab.s": dict.fromkeys(PARTITIONS, 0)})
        if self.log.taken is not None:
            began = moved_back(began, run.classes, self.log.taken | self.log.noted, 0)
            self.log.committed[run.name] = began
        query = self._query(run, began)
        self.log.taken = fed_by(run)
        return query

    def start_side(self, run: Run) -> FakeQuery:
        assert isinstance(run, QueryRun)
        at = self.log.committed[run.name] if self.log.noted else {"lab.s": dict(self.log.ends)}
        self.log.committed[run.name] = moved_back(at, run.classes, self.log.noted, 0)
        self.log.noted |= fed_by(run)
        return self._query(run, self.log.committed[run.name])

    def _query(self, run: QueryRun, began: Offsets) -> FakeQuery:
        assert not self.running(run.name), "two of a kind run"
        self.queries.append(FakeQuery(self.log, run, began, planned=self.plans))
        return self.queries[-1]

    def running(self, name: str) -> list[FakeQuery]:
        return [each for each in self.queries if each.run.name == name and not each.over]

    @property
    def wanted(self) -> QueryRun | None:
        if self.stands:
            return None
        return run_of(*self.classes, labelled=self.labelled, made=self.made_at)

    def report(self, report: RunReport) -> bool:
        self.reports.append(report)
        if report.state == "stopped":
            assert not [each for each in self.queries if not each.over], "it stands still"
        return True

    def step(self, seconds: float = 1.1) -> None:
        self.now += seconds
        if self.pair.gone and not self.stands:
            self.begin_engine()
        self.pair.want(self.wanted)
        self.pair.step()
        self._note_fed()

    def _note_fed(self) -> None:
        said, wanted = self.reports[-1], self.wanted
        if wanted is None or (said.state, said.fingerprint) != ("running", fingerprint(wanted)):
            return
        for topic in fed_by(wanted):
            self.fed_from.setdefault(topic, dict(self.log.ends))

    def open_class(self) -> None:
        self.made += 1
        self.classes = (*self.classes, f"class-{self.made}")
        self.made_at[self.classes[-1]] = dict(self.log.ends)

    def close_class(self) -> None:
        if self.classes:
            self.fed_from.pop(self.classes[0], None)
            self.classes = self.classes[1:]

    def die(self) -> None:
        """The engine ends in the middle of everything, and another one begins."""
        self.begin_engine()

    def plan_all(self) -> None:
        """Let Spark have planned all."""
        self.plans = True
        for each in self.queries:
            each.planned = True

    def settle(self) -> None:
        """Let everything happen that is to happen."""
        self.stands, self.slow = False, False
        self.let_go()
        self.plan_all()
        for _ in range(12):
            for _ in range(2):
                self.step(LONG_S)
            for query in self.queries:
                for partition in PARTITIONS:
                    query.flow(partition)
                query.end_batch()

    def missed(self) -> dict[str, set[tuple[str, int]]]:
        """What each class did not get of what came since it was made.

        Of lab.<output> it is what came once that was told to be fed.
        """
        begins = {t: self.made_at.get(t, since) for t, since in self.fed_from.items()}
        promised = {
            topic: {(p, o) for p in PARTITIONS for o in range(since[p], self.log.ends[p])}
            for topic, since in begins.items()
        }
        got = self.log.delivered
        return {t: lost for t, all_ in promised.items() if (lost := all_ - got.get(t, set()))}
