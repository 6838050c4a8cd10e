"""What should run in the data plane: the whole contract between catalog and secfilter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.clearance import Clearance
from catalog.delivery import Delivery
from catalog.label import PUBLIC, Label
from catalog.plan import Plan, sources
from catalog.plan_json import encode
from catalog.record_format import USUAL, RecordFormat
from catalog.relation import Relation
from catalog.topics import lab_topic, quarantine_topic


@dataclass(frozen=True, slots=True)
class Sender:
    """Who may write a topic, and nobody else: by its id ingest names the origins of tuples."""

    id: int
    topic: str


@dataclass(frozen=True, slots=True)
class IngestStream:
    """One stream of an ingest run: every valid record of its senders' topics gets `label`.

    A record larger than `max_bytes`, or whose event time is more than `max_ahead_ms` ahead of
    when the broker took it, goes to quarantine. Its topics in. and lab. have so many `partitions`;
    None where that is not known.
    """

    relation: Relation
    label: Label
    max_ahead_ms: int
    max_bytes: int
    record_format: RecordFormat = USUAL
    partitions: int | None = None
    senders: tuple[Sender, ...] = ()


@dataclass(frozen=True, slots=True)
class IngestRun:
    """One Spark query that serves a group of streams."""

    name: str
    streams: tuple[IngestStream, ...]


@dataclass(frozen=True, slots=True)
class FanOutClass:
    """One delivery topic and what it takes; the fields are those of `Delivery`."""

    topic: str
    clearance: Clearance
    weak: bool = False
    beyond: Clearance | None = None

    @property
    def delivery(self) -> Delivery:
        """What the topic takes."""
        return Delivery(self.clearance, self.weak, self.beyond)


@dataclass(frozen=True, slots=True)
class QueryRun:
    """One Spark query that computes an output and fans it out to its classes.

    `labelled` tells that other queries read the output, so lab.<output> is written too. `sources`
    holds the categories of the kind "source stream", which weak delivery treats differently.
    `starting_offsets` is {topic: {partition: offset}} of the labelled topics, for the first start.
    `reaches` are the categories that tuples can carry, by the id of each relation that the plan
    reads.
    """

    name: str
    plan: Plan
    output: Relation
    classes: tuple[FanOutClass, ...]
    labelled: bool
    sources: Label
    starting_offsets: Mapping[str, Mapping[str, int]]
    reaches: Mapping[int, Label] = field(default_factory=dict)

    def reach_of(self, relation: Relation) -> Label:
        """What a tuple of the relation can carry; of an unknown relation, nothing."""
        return self.reaches.get(relation.object_id, PUBLIC)


Run = IngestRun | QueryRun


# The message of a run that was told to end, also inside its batch, and goes on all the same.
NOT_ENDED = "its run has not ended"


@dataclass(frozen=True, slots=True)
class RunReport:
    """What an engine says of a run; nothing in it holds data.

    `state` is starting, running, restarting, failed or stopped. While it is running, all classes
    of the run with this `fingerprint` are fed: by one Spark query, or by a side run beside it.
    `topics` are those that the run uses or is about to use. `counted` is what it withheld since the
    last report, by kind.
    """

    name: str
    state: str
    message: str = ""
    fingerprint: str = ""
    topics: frozenset[str] = frozenset()
    counted: Mapping[str, int] = field(default_factory=dict)


def stream_topics(stream: str) -> tuple[str, str]:
    """The topics of a stream besides its senders': labelled, and what is refused."""
    return lab_topic(stream), quarantine_topic(stream)


def topics_of(run: Run | None) -> frozenset[str]:
    """The topics that a run reads or writes: while it runs none of them is deleted."""
    if run is None:
        return frozenset()
    if isinstance(run, IngestRun):
        written = (t for s in run.streams for t in stream_topics(s.relation.name))
        return frozenset({*written, *(sender.topic for s in run.streams for sender in s.senders)})
    read = (relation.topic for relation in sources(run.plan))
    return frozenset({*read, lab_topic(run.output.name), *(cls.topic for cls in run.classes)})


def fingerprint(run: Run) -> str:
    """A hash of all that a run depends on: a run whose fingerprint changed is restarted."""
    if isinstance(run, IngestRun):
        parts: object = [
            run.name,
            [
                [
                    *(encode(s.relation), encode(s.label), s.max_ahead_ms, s.max_bytes),
                    *(encode(s.record_format), [[each.id, each.topic] for each in s.senders]),
                ]
                for s in run.streams
            ],
        ]
    else:
        parts = [
            run.name,
            encode(run.plan),
            encode(run.output),
            [_parts(c) for c in sorted(run.classes, key=lambda c: c.topic)],
            run.labelled,
            encode(run.sources),
            [[number, encode(label)] for number, label in sorted(run.reaches.items())],
        ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _parts(each: FanOutClass) -> list[object]:
    beyond = [] if each.beyond is None else [hex(each.beyond.bits)]
    return [each.topic, hex(each.clearance.bits), each.weak, *beyond]
