"""A model of a group of ingest with its side run: Kafka, the catalog, a disk and engines.

The checkpoints, the notes and the supervision are the real ones.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream, Run, RunReport, Sender, fingerprint
from catalog.schema import Attribute, Schema, Type
from catalog.topics import lab_topic, quarantine_topic
from secfilter.after_commit import AfterCommit, Drains
from secfilter.background import Task
from secfilter.beside import side_name
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.going_on import GoingOn
from secfilter.ingest_with_side import IngestWithSide
from secfilter.kafka_options import EARLIEST, Offsets
from secfilter.lab_notes import notes_of
from secfilter.newcomers import topics_read
from secfilter.pace import Pace
from secfilter.positions import Positions
from secfilter.side_notes import SideNotes
from secfilter.supervised import Means
from secfilter.topic_faults import spared
from secfilter.with_side import Starts
from tests.unit.secfilter.stoppable import Stoppable

_SCHEMA = Schema((Attribute("a", Type.STRING),))
NAME = "ingest-1"
SIDE = side_name(NAME)
_STREAMS = (1, 2)
# Longer than a failed start waits at most, and than a batch is waited for.
_LONG_S = 100.0


@dataclass
class Topics(Positions):
    """Kafka: how many records each sender sent, and the origins in each lab topic in order."""

    sent: dict[str, int] = field(default_factory=dict)
    lab: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def starting(self, topics: Sequence[str], known: Offsets) -> Offsets:
        return {topic: known.get(topic, {"0": EARLIEST}) for topic in topics}

    def lost(self, known: Offsets) -> int:
        return 0

    def ends(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {t: {0: self.sent[t] if t in self.sent else len(self.lab[t])} for t in topics}

    def raw_ends(self, topic: str) -> dict[int, int]:
        return self.ends([topic])[topic]

    def next_tuples(self, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        return dict(offsets)

    def newest_origins(
        self, streams: Iterable[str], since: Offsets | None = None
    ) -> dict[int, dict[int, int]]:
        found: dict[int, dict[int, int]] = {}
        for topic in map(lab_topic, streams):
            for sender, offset in self.lab[topic][(since or {}).get(topic, {"0": 0})["0"] :]:
                found[sender] = {0: max(offset, found.get(sender, {0: -1})[0])}
        return found


@dataclass
class FakeQuery(Stoppable):
    """Reads its senders from where it began, and leaves out what it knows to be in lab."""

    topics: Topics
    run: IngestRun
    checkpoint: Checkpoint
    after: AfterCommit

    def __post_init__(self) -> None:
        self.began = self.checkpoint.committed()
        self.at = {topic: max(0, self.began[topic]["0"]) for topic in topics_read(self.run)}
        noted = notes_of(self.checkpoint).lab_ends(self.began)
        names = (stream.relation.name for stream in self.run.streams)
        self.newest = self.topics.newest_origins(names, noted)

    def write(self, place: int, count: int = 1) -> None:
        """Take the next records of one sender."""
        senders = [(s, each) for s in self.run.streams for each in s.senders]
        stream, sender = senders[place % len(senders)]
        for _ in range(count):
            offset = self.at[sender.topic]
            if self.over or offset >= self.topics.sent[sender.topic]:
                return
            if offset > self.newest.get(sender.id, {0: -1})[0]:
                self.topics.lab[lab_topic(stream.relation.name)].append((sender.id, offset))
            self.at[sender.topic] += 1

    def end_batch(self) -> None:
        """Commit what was taken; end if it was asked to."""
        if self.over:
            return
        number = self.checkpoint.last_commit() + 1
        read = json.dumps({topic: {"0": offset} for topic, offset in self.at.items()})
        for log, text in (("offsets", f"v1\n{{}}\n{read}"), ("commits", "v1\n{}")):
            folder = self.checkpoint.spark / log
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(number)).write_text(text)
        self.over = self.asked


@dataclass
class Senders:
    """The catalog: the senders of each stream, and which of them drain or are gone."""

    of: dict[int, list[Sender]] = field(default_factory=lambda: {n: [] for n in _STREAMS})
    draining: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)

    def streams(self) -> Iterator[IngestStream]:
        for number, senders in self.of.items():
            left = tuple(each for each in senders if each.id not in self.gone)
            if left and number not in self.removed:
                relation = Relation(number, f"s{number}", RelationKind.STREAM, _SCHEMA, None, 0)
                yield IngestStream(relation, Label.of(0), 1, 1, senders=left)

    def drains(self) -> Drains:
        return Drains(
            lambda: self.draining - self.gone,
            self.gone.update,
            self.still_read,
        )

    def still_read(self, senders: Collection[int]) -> Collection[int]:
        ended = {each.id for number in self.removed for each in self.of[number]}
        return set(senders) - self.gone - ended


class World:
    """One engine after another over the same Kafka, folder and catalog."""

    def __init__(self, folder: Path) -> None:
        self.topics = Topics({}, lab={lab_topic(f"s{n}"): [] for n in _STREAMS})
        self.senders = Senders()
        self.checkpoints = Checkpoints(folder)
        self.going_on = GoingOn(self.checkpoints, self.topics, self.senders.drains())
        self.faults: set[str] = set()
        self.made = 0
        self.stands = self.slow = False
        self.now = 0.0
        # The number of files that are still written before the disk fails; None for all.
        self.disk: int | None = None
        self.ended: list[FakeQuery] = []
        self.queries: list[FakeQuery] = []
        # How many of them there were at the end of the last step.
        self.known = 0
        self.reports: list[RunReport] = []
        self.add_sender(0)
        self.begin_engine()

    def begin_engine(self) -> None:
        """The engine ends in the middle of everything, and another one begins."""
        self.ended, self.queries, self.held = self.queries, [], list[Task[Any]]()
        self.disk, self.known = None, 0
        means = Means(
            *(self.start, self.report, lambda: self.now, Pace(), self.begin, lambda: True)
        )
        kept = SideNotes(self.checkpoints)
        self.pair = IngestWithSide(NAME, means, Starts(self.start, self.start_side, kept))

    def write_file(self, path: Path, text: str) -> None:
        """As `replace_file`, without syncing, on a disk that may fail."""
        if self.disk is not None:
            self.disk -= 1
            if self.disk < 0:
                self.disk = None
                raise OSError(28, "no space left")
        path.write_text(text)

    def begin(self, _name: str, task: Task[Any]) -> None:
        self.held.append(task)
        if not self.slow:
            self.let_go()

    def let_go(self) -> None:
        held, self.held = self.held, []
        for task in held:
            task.do()

    def start(self, run: Run, _settled: bool) -> FakeQuery:
        assert not self.running(SIDE), "the side run has not ended"
        return self._query(run)

    def start_side(self, run: Run) -> FakeQuery:
        return self._query(run)

    def _query(self, run: Run) -> FakeQuery:
        assert isinstance(run, IngestRun)
        assert not self.being_read() & topics_read(run), "two runs read a topic"
        checkpoint, _ = self.going_on.checkpoint(run)
        after = AfterCommit(run, checkpoint, self.topics, self.senders.drains())
        self.queries.append(FakeQuery(self.topics, run, checkpoint, after))
        return self.queries[-1]

    def running(self, name: str) -> list[FakeQuery]:
        return [each for each in self.queries if each.run.name == name and not each.over]

    @property
    def wanted(self) -> IngestRun | None:
        streams = tuple(self.senders.streams())
        if self.stands or not streams:
            return None
        run = spared(IngestRun(NAME, streams), dict.fromkeys(self.faults, "faulty"))
        assert run is None or isinstance(run, IngestRun)
        return run

    def report(self, report: RunReport) -> bool:
        self.reports.append(report)
        if report.state == "stopped":
            assert not [each for each in self.queries if not each.over], "it stands still"
        return True

    def step(self, seconds: float = 1.1) -> None:
        self.now += seconds
        if self.pair.gone and self.wanted is not None:
            self.begin_engine()
        begun = frozenset(topic for each in self.queries[self.known :] for topic in each.at)
        before = self.being_read() | begun
        self.pair.want(self.wanted, self.faults)
        self.pair.step()
        self.known = len(self.queries)
        said, wanted = self.reports[-1], self.wanted
        if (
            wanted is not None
            and said.state == "running"
            and said.fingerprint == fingerprint(wanted)
        ):
            # That a query was ended in this step, or before this step took it, is seen later.
            read = before | self.being_read()
            assert read >= topics_read(wanted), "it is told that all are read"

    def being_read(self) -> frozenset[str]:
        """The senders' topics that queries read now."""
        return frozenset(topic for each in self.queries if not each.over for topic in each.at)

    def add_sender(self, place: int) -> None:
        """A user may SEND to a stream; maybe it is the first one there."""
        self.made += 1
        number = _STREAMS[place % len(_STREAMS)]
        sender = Sender(self.made, f"in.s{number}.{self.made}")
        self.topics.sent[sender.topic] = 0
        self.senders.of[number].append(sender)

    def active(self) -> list[Sender]:
        """The senders that may send."""
        found = [each for number in _STREAMS for each in self.senders.of[number]]
        return [each for each in found if each.id not in self.senders.draining]

    def send(self, place: int) -> None:
        if active := self.active():
            self.topics.sent[active[place % len(active)].topic] += 1

    def revoke(self, place: int) -> None:
        if active := self.active():
            self.senders.draining.add(active[place % len(active)].id)

    def break_topic(self, place: int) -> None:
        own = [*self.topics.sent, *(quarantine_topic(f"s{n}") for n in _STREAMS)]
        self.faults.add(own[place % len(own)])

    def look(self, _place: int) -> None:
        """The work beside the queries; one of an ended query may be late."""
        for query in (*self.queries, *self.ended):
            with suppress(OSError):
                query.after.look()

    def settle(self) -> None:
        """Let everything happen that is to happen."""
        self.stands, self.slow, self.disk = False, False, None
        self.faults.clear()
        self.let_go()
        for turn in range(12):
            for _ in range(2):
                self.step(_LONG_S)
            for query in self.queries:
                for place in range(self.made):
                    query.write(place, 1_000)
                query.end_batch()
            self.look(turn)

    def repeated(self) -> list[tuple[int, int]]:
        """The origins that are in lab more than once."""
        origins = Counter(origin for each in self.topics.lab.values() for origin in each)
        return [origin for origin, count in origins.items() if count > 1]

    def missing(self) -> set[tuple[int, int]]:
        """The origins of records that are not in lab; a stream that was removed does not count."""
        there = {origin for each in self.topics.lab.values() for origin in each}
        sent = {
            (sender.id, offset)
            for number, senders in self.senders.of.items()
            if number not in self.senders.removed
            for sender in senders
            for offset in range(self.topics.sent[sender.topic])
        }
        return sent - there


Action = Callable[[World, int], object]


def each_query(name: str, do: Callable[[FakeQuery, int], object]) -> Action:
    return lambda world, place: [do(each, place) for each in world.running(name)]


def _set(name: str, value: bool) -> Action:
    return lambda world, _place: setattr(world, name, value)


def _return_starts(world: World, _place: int) -> None:
    world.slow = False
    world.let_go()


def _fail_disk(world: World, place: int) -> None:
    world.disk = place


ACTIONS: dict[str, Action] = {
    "send": World.send,
    "step": lambda world, _: world.step(),
    "add a sender": World.add_sender,
    "revoke": World.revoke,
    "remove a stream": lambda world, place: world.senders.removed.add(_STREAMS[place % 2]),
    "look": World.look,
    "main writes": each_query(NAME, FakeQuery.write),
    "side writes": each_query(SIDE, FakeQuery.write),
    "main's batch ends": each_query(NAME, lambda query, _: query.end_batch()),
    "side's batch ends": each_query(SIDE, lambda query, _: query.end_batch()),
    "main crashes": each_query(NAME, lambda query, _: query.crash()),
    "side crashes": each_query(SIDE, lambda query, _: query.crash()),
    "the engine dies": lambda world, _: world.begin_engine(),
    "a fence is not proven": _set("stands", True),
    "it is proven": _set("stands", False),
    "a topic is faulty": World.break_topic,
    "topics are well": lambda world, _: world.faults.clear(),
    "the disk fails": _fail_disk,
    "starts take long": _set("slow", True),
    "starts return": _return_starts,
    "wait": lambda world, _: world.step(_LONG_S),
}
# What must happen often for the rest to matter.
_OFTEN = (
    *("step", "step", "step", "step", "send", "send", "add a sender", "side writes", "side writes"),
    *("main writes", "main writes", "look", "look", "main's batch ends", "side's batch ends"),
)
STEPS = st.tuples(st.sampled_from([*ACTIONS, *_OFTEN]), st.integers(0, 7))


@contextmanager
def new_world() -> Iterator[World]:
    """A world whose group has one sender, and runs."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        with (
            patch("secfilter.checkpoint.replace_file", world.write_file),
            patch("secfilter.lab_notes.replace_file", world.write_file),
        ):
            world.step()
            yield world


def do(world: World, *names: str) -> None:
    for name in names:
        what, _, place = name.partition(":")
        ACTIONS[what](world, int(place or 0))


TAKEN_OVER = ("main's batch ends", "step", "side's batch ends", "step", "step")


def come_to(world: World) -> tuple[FakeQuery, FakeQuery]:
    """Sender 1 is in stream 1, and 2 in stream 2. Then sender 3 comes to stream 1."""
    do(world, "add a sender:1", "step", *TAKEN_OVER)
    do(world, "add a sender:0", "step")
    (main,), (side,) = world.running(NAME), world.running(SIDE)
    return main, side
