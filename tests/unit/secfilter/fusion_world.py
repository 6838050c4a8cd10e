"""Engines that run fused queries over one log, with hands on all that can happen.

The rules, the supervision and the checkpoints are the real ones. Spark and Kafka are a log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from catalog.clearance import Clearance
from catalog.errors import Unavailable
from catalog.label import Label
from catalog.plan import Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, FusedRun, QueryRun, Run, RunReport, fingerprint
from catalog.schema import Attribute, Schema, Type
from secfilter.background import Task
from secfilter.beside import fed_by
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.going_on import layout_of, owners_of, shape_of
from secfilter.kafka_options import Offsets
from secfilter.pace import Pace
from secfilter.runner import Runner
from secfilter.seats import Seats
from secfilter.side_notes import SideNotes
from secfilter.topic_faults import Faults
from secfilter.with_side import Seating, Starts
from tests.plans import whole
from tests.unit.secfilter.stoppable import Stoppable

SCHEMA = Schema((Attribute("a", Type.STRING),))
STREAM = Relation(1, "s", RelationKind.STREAM, SCHEMA, None, 0)
PARTITIONS = ("0", "1")
LAB = "lab.s"
PREFIX = "fused-query-1"
# Longer than a run needs to settle, and than any start or batch is waited for.
LONG_S = 200.0
Place = tuple[str, int]


def query(number: int, classes: Sequence[str] = ("c",), begins: Offsets | None = None) -> QueryRun:
    """A run of a query over the stream that began there."""
    name = f"o{number}"
    relation = Relation(100 + number, name, RelationKind.OUTPUT, SCHEMA, None, 0)
    fed = tuple(FanOutClass(f"out.{name}.{each}", Clearance.of(0)) for each in classes)
    start = begins or {LAB: dict.fromkeys(PARTITIONS, 0)}
    output = FedOutput(relation, fed, begins=start)
    reaches = {1: Label.of(0)}
    return QueryRun(
        *(f"query-{number}", whole(Source(STREAM)), (output,), Label.of(0), start), reaches
    )


@dataclass
class FakeQuery(Stoppable):
    """Reads the log from `began` on, and delivers to the topics of its run."""

    world: World
    run: QueryRun
    checkpoint: Checkpoint
    began: Offsets
    at: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.at = dict(self.began[LAB])

    def flow(self, partition: str) -> None:
        """Deliver what there is in the partition."""
        if self.over or not self.planned:
            return
        end = self.world.ends[partition]
        for offset in range(self.at[partition], end):
            for output in self.run.outputs:
                if offset < output.begins.get(LAB, {}).get(partition, 0):
                    continue
                for topic in output.topics:
                    self.world.delivered.setdefault(topic, Counter())[partition, offset] += 1
        self.at[partition] = end

    def flow_all(self) -> None:
        """Deliver what there is."""
        for partition in PARTITIONS:
            self.flow(partition)

    def end_batch(self) -> None:
        """The batch ends, and what is delivered is committed. Then it goes on, or it is asked."""
        if self.over:
            return
        if not self.planned:
            self.over = self.asked
            return
        assert self.checkpoint.folder.exists(), "its checkpoint is deleted"
        number = self.checkpoint.last_commit() + 1
        texts = {"offsets": f"v1\n{{}}\n{json.dumps({LAB: self.at})}", "commits": "v1\n{}"}
        for log, text in texts.items():
            (self.checkpoint.spark / log).mkdir(parents=True, exist_ok=True)
            (self.checkpoint.spark / log / str(number)).write_text(text)
        self.over = self.asked


@dataclass
class World:
    """One engine after another over the same log and the same checkpoints."""

    folder: Path
    wanted: dict[str, QueryRun] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    delivered: dict[str, Counter[Place]] = field(default_factory=dict)
    # Of each topic that was told to be fed: the ends of the log then.
    fed_from: dict[str, dict[str, int]] = field(default_factory=dict)
    queries: list[FakeQuery] = field(default_factory=list)
    said: dict[str, RunReport] = field(default_factory=dict)
    counted: dict[str, Counter[str]] = field(default_factory=dict)
    held: list[Task[Any]] = field(default_factory=list)
    # What cannot be started now.
    refused: set[str] = field(default_factory=set)
    slow: bool = False
    # Whether the catalog cannot be reached.
    away: bool = False
    # Whether Spark plans a query at once.
    plans: bool = True
    fuses: bool = True
    now: float = 0.0
    made: int = 0

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.folder)
        self.seats = Seats(self.checkpoints, self._starting)
        self.sides = SideNotes(self.checkpoints)
        self.begin_engine()

    def begin_engine(self) -> None:
        """Another engine begins. Nothing of the last one runs any more."""
        self.held, self.queries, self.said = [], [], {}
        seating = Seating(PREFIX, self.seats) if self.fuses else None
        starts = Starts(self.start, self.start_side, self.sides, seating=seating)
        self.runner = Runner(self, starts, self, lambda: self.now, Pace(), self.begin)

    # The engine's ledger and its watch.
    def runs(self) -> list[QueryRun]:
        self._require_catalog()
        return list(self.wanted.values())

    def _require_catalog(self) -> None:
        if self.away:
            raise Unavailable("the catalog cannot be reached")

    def report(self, report: RunReport) -> None:
        self._require_catalog()
        if report.state == "stopped":
            assert not self.delivering(report.name), "it stands still"
        self.said[report.name] = report
        if report.counted:
            self.counted.setdefault(report.name, Counter()).update(report.counted)

    def faults(self, _: object) -> Faults:
        return {}

    def applied(self) -> None: ...

    def beat(self) -> None: ...

    def turned(self) -> None: ...

    def begin(self, _name: str, task: Task[Any]) -> None:
        self.held.append(task)
        if not self.slow:
            self.let_go()

    def let_go(self) -> None:
        """Let all starts return."""
        held, self.held = self.held, []
        for task in held:
            task.do()

    def plan_all(self) -> None:
        """Let Spark have planned all."""
        self.plans = True
        for each in self.queries:
            each.planned = True

    def start(self, run: Run, _settled: bool) -> FakeQuery:
        """As `Engine.running`."""
        assert isinstance(run, QueryRun)
        if run.name in self.refused or (self.refused and isinstance(run, FusedRun)):
            raise Unavailable("it cannot be started now")
        if isinstance(run, FusedRun):
            run = self.seats.take(run)
        elif self.seats.group_of(run.name) is not None:
            self.seats.leave(run.name)
        return self._query(run)

    def start_side(self, run: Run) -> FakeQuery:
        """As `Engine.running_side`."""
        assert isinstance(run, QueryRun)
        if not self.sides.unfinished(run.name):
            self.sides.finish(run.name)
            run = replace(run, starting_offsets={LAB: dict(self.ends)})
        made = self._query(run)
        self.sides.note(run.name, fed_by(run))
        return made

    def _query(self, run: QueryRun) -> FakeQuery:
        assert not self.running(run.name), "two of a kind run"
        checkpoint = self.checkpoints.current(run.name, shape_of(run))
        if checkpoint is None:
            layout, _ = layout_of(run, None)
            owners = owners_of(run)
            start = self._starting(list(owners), run.starting_offsets)
            checkpoint = self.checkpoints.renew(run.name, shape_of(run), start, owners, layout)
        self.checkpoints.drop_older(run.name)
        began = checkpoint.committed()
        made = FakeQuery(self, run, checkpoint, began, planned=self.plans)
        self.queries.append(made)
        return made

    def _starting(self, topics: Sequence[str], known: Offsets) -> Offsets:
        return {t: {p: max(0, known.get(t, {}).get(p, 0)) for p in PARTITIONS} for t in topics}

    def running(self, name: str) -> list[FakeQuery]:
        """The Spark queries of that name that run."""
        return [each for each in self.queries if each.run.name == name and not each.over]

    def fused(self) -> list[FakeQuery]:
        """The fused runs that run."""
        return [q for q in self.queries if isinstance(q.run, FusedRun) and not q.over]

    def delivering(self, name: str) -> list[FakeQuery]:
        """The Spark queries that run and deliver results of the run, side runs too."""
        fused = [q for q in self.fused() if name in members(q)]
        return [*self.running(name), *self.running(f"{name}-side"), *fused]

    def step(self, seconds: float = 1.1) -> None:
        """Let some time pass, and the engine look once."""
        self.now += seconds
        self.runner.step()
        self._note_fed()

    def _note_fed(self) -> None:
        for name, run in self.wanted.items():
            said = self.said.get(name)
            if said is None or (said.state, said.fingerprint) != ("running", fingerprint(run)):
                continue
            for topic in fed_by(run):
                self.fed_from.setdefault(topic, dict(self.ends))

    def add(self) -> None:
        """A query is added. It sees what comes from now on."""
        self.made += 1
        run = query(self.made, begins={LAB: dict(self.ends)})
        self.wanted[run.name] = run

    def take(self, name: str) -> None:
        """A query is removed."""
        for topic in fed_by(self.wanted.pop(name)):
            self.fed_from.pop(topic, None)

    def open_class(self, name: str) -> None:
        """A class of a query is opened."""
        run = self.wanted[name]
        (output,) = run.outputs
        number = len(output.classes)
        new = FanOutClass(f"{output.classes[0].topic}{number}", Clearance.of(0))
        output = replace(output, classes=(*output.classes, new))
        self.wanted[name] = replace(run, outputs=(output,))

    def turn(self) -> None:
        """A while passes: all deliver, and their batches end."""
        self.step()
        for each in self.queries:
            each.flow_all()
            each.end_batch()

    def long_turn(self) -> None:
        """The same after a long time."""
        self.now += LONG_S
        self.turn()

    def settle(self) -> None:
        """Let everything happen that is to happen."""
        self.refused, self.slow = set(), False
        self.let_go()
        self.plan_all()
        for _ in range(12):
            self.now += LONG_S
            self.turn()
        # A member that failed with its group waits longer. Then its batches end quietly.
        for _ in range(12):
            self.now += 300 * LONG_S
            self.turn()
            self.turn()

    def missed(self) -> Mapping[str, set[Place]]:
        """What each topic did not get of what came once it was told to be fed."""
        promised = {
            topic: {(p, o) for p in PARTITIONS for o in range(since[p], self.ends[p])}
            for topic, since in self.fed_from.items()
        }
        return {
            t: lost
            for t, all_ in promised.items()
            if (lost := all_ - self.delivered.get(t, Counter()).keys())
        }

    def repeated(self) -> set[str]:
        """The topics that got something twice."""
        return {topic for topic, got in self.delivered.items() if max(got.values(), default=0) > 1}


def members(fused: FakeQuery) -> list[str]:
    """The names of the runs that a fused run carries."""
    assert isinstance(fused.run, FusedRun)
    return [each.name for each in fused.run.members]
