"""The runs that SecFilter should keep running: the whole contract of catalog and secfilter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from catalog.clearance import Clearance
from catalog.conflict_class import ConflictClass
from catalog.delivery import Delivery
from catalog.label import PUBLIC, Label
from catalog.label_rule import LabelRule
from catalog.level_rule import LevelRule
from catalog.placement import Placement
from catalog.plan import Plan, is_stateful, source_nodes, sources
from catalog.plan_json import encode
from catalog.record_format import USUAL, RecordFormat
from catalog.relation import Relation
from catalog.topics import lab_topic, parked_topic, quarantine_topic

SenderNumbers = Mapping[int, int]
"""The numbers (from 0) of a stream's independent senders, by the sender's id.

Each user has one number. Its topics are several senders if it lost SEND and got it again.
"""

VIEW_BITS = 16
"""So many bits of a view's id are the place of its role among those of the class."""

# More than the distance of any two times, in milliseconds.
_ANY_MS = 2**60


@dataclass(frozen=True, slots=True)
class Sender:
    """A sender: only it may write its topic. Ingest uses its id in the origins of tuples.

    `policy` is its role expression if the stream's label rule is by sender. `parts` is its user's
    level if the stream has a level rule, a part for each conflict class; None is undecided. Each
    label gets the `floor` in addition (`catalog.floors`). The sender that `readmits` is the
    platform itself: it sends parked records again, with their labels.
    """

    id: int
    topic: str
    policy: str | None = None
    readmits: bool = False
    parts: tuple[str | None, ...] = ()
    floor: Label = PUBLIC


@dataclass(frozen=True, slots=True)
class IngestStream:
    """One stream of an ingest run: every valid record of its senders' topics gets `label`.

    A record goes to quarantine if it is larger than `max_bytes`, or if its event time is more than
    `max_ahead_ms` after the time at which the broker took it, or more than `late_ms`
    before. `partitions` is the number of partitions of its in topics and its lab topic, or None if
    it is not known.

    With a label rule a record also gets the label of its role expression. `texts` has the labels of
    the expressions that are fixed: those in the rule, or of the senders. A record with another
    expression is parked. So what ingest does with a record never depends on when it does it.

    With a level rule it also gets the label of its level. `conflict_classes` are those of the rule,
    in their order.
    """

    relation: Relation
    label: Label
    max_ahead_ms: int
    max_bytes: int
    record_format: RecordFormat = USUAL
    partitions: int | None = None
    senders: tuple[Sender, ...] = ()
    rule: LabelRule | None = None
    texts: tuple[tuple[str, Label], ...] = ()
    level_rule: LevelRule | None = None
    conflict_classes: tuple[ConflictClass, ...] = ()

    @property
    def late_ms(self) -> int:
        """How far an event time may be before the time at which the broker took the record."""
        return self.relation.lateness_ms if self.relation.by_ticks else _ANY_MS


@dataclass(frozen=True, slots=True)
class IngestRun:
    """One Spark query that serves a group of streams."""

    name: str
    streams: tuple[IngestStream, ...]


@dataclass(frozen=True, slots=True)
class FanOutClass:
    """One delivery topic and the rule for what it takes. The other fields are those of `Delivery`.

    `id` is that of the class in the catalog. It is never used again. State that is kept for each
    class (`QueryRun.viewers`) goes by it. `begins` is {topic: {partition: offset}} of the lab
    topics when the class's topic was made, at `made_ms` (since 1970 UTC). That never changes. All
    that comes later is for the class.
    """

    topic: str
    clearance: Clearance
    weak: bool = False
    beyond: Clearance | None = None
    id: int = 0
    ways: tuple[Clearance, ...] = ()
    begins: Mapping[str, Mapping[str, int]] = field(default_factory=dict, compare=False)
    made_ms: int = field(default=0, compare=False)

    @property
    def delivery(self) -> Delivery:
        """What the topic takes."""
        return Delivery(self.clearance, self.weak, self.beyond, self.ways)

    def role_views(self) -> tuple[FanOutClass, ...]:
        """What each of its roles sees, as a class with an id of its own (000 §5.2.1).

        The places of the ways never change, so the ids do not either.
        """
        return tuple(
            replace(self, clearance=way, ways=(), id=self.id << VIEW_BITS | place)
            for place, way in enumerate(self.ways or (self.clearance,))
        )


@dataclass(frozen=True, slots=True)
class FedOutput:
    """An output that an execution computes, with its classes.

    `labelled` says that other queries read the output, so lab.<output> is written too. `begins` is
    {topic: {partition: offset}} of the lab topics when its query was added: it gets no result of a
    tuple that came earlier.

    Each new class and each new reader of upserts gets the rows that stand. So of such an output
    `readers` has the ids of the outputs whose queries read it, and `kept_ms` is the retention of
    its delivery topics.

    It gets results with event times later than `after_ms` and up to `until_ms`, where these are not
    None. If it `moves`, another execution delivers its other results (`catalog.moves`).
    """

    relation: Relation
    classes: tuple[FanOutClass, ...] = ()
    labelled: bool = False
    begins: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    readers: frozenset[int] = frozenset()
    kept_ms: int = 0
    after_ms: int | None = None
    until_ms: int | None = None
    moves: bool = False

    @property
    def topics(self) -> frozenset[str]:
        """The topics to which its results go."""
        inside = {self.relation.topic} if self.labelled else set()
        return frozenset(inside | {each.topic for each in self.classes})


@dataclass(frozen=True, slots=True)
class QueryRun:
    """One Spark query: an execution, which fans its results out to the classes of its outputs.

    If these are isolated (`Placement.APART`), there is a run for each class, and its reaches have
    only what the class may see: it reads nothing else.

    It has an output for each of the equal queries that share it, at least one. `sources` holds the
    categories of the kind `source`, which weak semantics treats differently. `starting_offsets` is
    {topic: {partition: offset}} of the lab topics, for the first start.
    `reaches` has the reach of each relation that the plan reads, by the relation's id.
    `independent` has the independent senders of each stream whose declared aggregate the plan
    gives, by the stream's id. `registered` is the first bit that has no category yet, or None if
    that is not known. The run need not be restarted when it changes.

    The results of a query that runs at a level carry its label, the `floor`. `conflict_classes` are
    those whose companies the plan shows as levels. `placement` says where the fan-out is.

    It begins with a copy of the state of the run `copied_from`, if that is not None. The runs
    `copies` begin with a copy of its own state, as it is at its next start. Neither is a reason to
    restart it.

    If it is a `backfill`, it begins in the past, for one class alone (`catalog.backfills`). Once it
    has `ends`, {topic: {partition: offset}} of the lab topics, its work is done when all is
    delivered that came before them. They are no reason to restart it either.
    """

    name: str
    plan: Plan
    outputs: tuple[FedOutput, ...]
    sources: Label
    starting_offsets: Mapping[str, Mapping[str, int]]
    reaches: Mapping[int, Label] = field(default_factory=dict)
    independent: Mapping[int, SenderNumbers] = field(default_factory=dict)
    registered: int | None = None
    floor: Label = PUBLIC
    conflict_classes: tuple[ConflictClass, ...] = ()
    placement: Placement = Placement.SINK
    copied_from: str | None = None
    copies: tuple[str, ...] = ()
    backfill: bool = False
    ends: Mapping[str, Mapping[str, int]] | None = None

    @property
    def viewers(self) -> tuple[FanOutClass, ...] | None:
        """The classes that each have a view of their own, or None if all share the results.

        A plan without state gives each class the same either way. If it is run `by_role`, these are
        the views of the classes' roles. A role that sees nothing has none.
        """
        if self.by_role:
            return tuple(
                view
                for output in self.outputs
                for each in output.classes
                for view in each.role_views()
                if view.clearance.bits or output.relation.public
            )
        by_class = self.placement.by_class and is_stateful(self.plan)
        return self.classes if by_class else None

    @property
    def by_role(self) -> bool:
        """Whether each role of a class has a view of its own, and what these give is merged."""
        return self.placement.has_views_of_roles(self.plan)

    @property
    def output(self) -> Relation:
        """The first of its outputs. All have the same attributes."""
        return self.outputs[0].relation

    @property
    def classes(self) -> tuple[FanOutClass, ...]:
        """The classes of all its outputs."""
        return tuple(each for output in self.outputs for each in output.classes)

    @property
    def labelled(self) -> bool:
        """Whether other queries read one of its outputs."""
        return any(output.labelled for output in self.outputs)

    def reach_of(self, relation: Relation) -> Label:
        """The reach of the relation. It is empty for an unknown relation."""
        return self.reaches.get(relation.object_id, PUBLIC)

    def numbers_of(self, relation: Relation) -> SenderNumbers:
        """The independent senders of the relation. There are none of an unknown relation."""
        return self.independent.get(relation.object_id, {})


@dataclass(frozen=True, slots=True)
class FusedRun(QueryRun):
    """Several executions without state in one Spark query: a scan of the relation that all read.

    No catalog has it: an engine makes it of the runs that are wanted (`fused`). Its own plan is the
    relation alone, and its outputs are those of its `members`.
    """

    members: tuple[QueryRun, ...] = ()


def fused(name: str, members: Sequence[QueryRun]) -> FusedRun:
    """These runs as one. Each reads the same source, and no other, with the same reach and floor.

    Raises ValueError if they do not.
    """
    first, *others = members
    nodes = source_nodes(first.plan)
    if len(nodes) != 1 or any(common_parts(each) != common_parts(first) for each in others):
        raise ValueError("runs that differ in what they read are not one run")
    return FusedRun(
        *(name, Plan(nodes[0]), tuple(output for each in members for output in each.outputs)),
        *(first.sources, {}),
        reaches=first.reaches,
        registered=first.registered,
        floor=first.floor,
        conflict_classes=first.conflict_classes,
        members=tuple(members),
    )


def common_parts(run: QueryRun) -> tuple[object, ...]:
    """What the members of a fused run have in common."""
    read = (source_nodes(run.plan), run.sources, dict(run.reaches), run.registered)
    return (*read, run.floor, run.conflict_classes)


def apart(
    run: QueryRun, own: FanOutClass, name: str, begins: Mapping[str, Mapping[str, int]]
) -> QueryRun:
    """The run of one class alone, which begins there. It reads only what the class may see.

    So nothing about it depends on what the class may not see: also not when it is started anew
    (the replicated query processors of 001 §2).
    """
    (output,) = run.outputs
    seen = {of: Label(reach.bits & own.clearance.bits) for of, reach in run.reaches.items()}
    return replace(
        run,
        name=name,
        outputs=(replace(output, classes=(own,), labelled=False, begins=begins),),
        sources=Label(run.sources.bits & own.clearance.bits),
        starting_offsets=begins,
        reaches=seen,
    )


Run = IngestRun | QueryRun


# The message of a run that did not end after it was told to, even inside its batch.
NOT_ENDED = "its run has not ended"


@dataclass(frozen=True, slots=True)
class RunReport:
    """An engine's report on a run. It never holds data.

    `state` is starting, running, restarting, failed or stopped. While it is running, all classes
    of the run with this `fingerprint` are fed, or all its senders are read: by one Spark query, or
    by a side run beside it.
    `topics` are those that the run uses or is about to use. `counted` is what it withheld since the
    last report, by kind. `delivered_ms` is the latest of the times up to which an output is to get
    results (`FedOutput.until_ms`) that is passed: all results up to there are delivered. A backfill
    is `through` if all is delivered that came before its `ends`.
    """

    name: str
    state: str
    message: str = ""
    fingerprint: str = ""
    topics: frozenset[str] = frozenset()
    counted: Mapping[str, int] = field(default_factory=dict)
    delivered_ms: int | None = None
    through: bool = False


def stream_topics(stream: str, *, ruled: bool) -> tuple[str, ...]:
    """The lab topic and the quarantine of a stream, and the topic of parked records if it has one.

    Only a stream that is `ruled`, one with a label rule, parks records.
    """
    topics = (lab_topic(stream), quarantine_topic(stream))
    return (*topics, parked_topic(stream)) if ruled else topics


def topics_of(run: Run | None) -> frozenset[str]:
    """The topics that a run reads or writes. None of them is deleted while it runs."""
    if run is None:
        return frozenset()
    if isinstance(run, IngestRun):
        written = (
            topic
            for stream in run.streams
            for topic in stream_topics(stream.relation.name, ruled=stream.rule is not None)
        )
        return frozenset({*written, *(sender.topic for s in run.streams for sender in s.senders)})
    read = (relation.topic for relation in sources(run.plan))
    return frozenset({*read, *written_by(run)})


def written_by(run: QueryRun) -> frozenset[str]:
    """The topics that a query may write: those of its classes, and lab.<output> of its outputs."""
    inside = (output.relation.topic for output in run.outputs)
    return frozenset({*inside, *(each.topic for each in run.classes)})


def ends_of(run: Run | None) -> frozenset[int]:
    """The event times up to which outputs of the run get results, if they move away from it."""
    outputs = run.outputs if isinstance(run, QueryRun) else ()
    return frozenset(each.until_ms for each in outputs if each.until_ms is not None)


def fingerprint(run: Run) -> str:
    """A hash of everything on which a run depends. If it changes, the run is restarted."""
    parts: list[object]
    if isinstance(run, IngestRun):
        parts = [
            run.name,
            [
                [
                    *(encode(s.relation), encode(s.label), s.max_ahead_ms, s.max_bytes),
                    *(encode(s.record_format), encode(s.rule)),
                    [
                        [
                            *(each.id, each.topic, each.policy, each.readmits),
                            *(list(each.parts), encode(each.floor)),
                        ]
                        for each in s.senders
                    ],
                    [[text, encode(label)] for text, label in s.texts],
                    *(encode(s.level_rule), list(map(_class_parts, s.conflict_classes))),
                ]
                for s in run.streams
            ],
        ]
    else:
        parts = [
            run.name,
            encode(run.plan),
            [_output_parts(output) for output in run.outputs],
            encode(run.sources),
            [[number, encode(label)] for number, label in sorted(run.reaches.items())],
            [[stream, sorted(of.items())] for stream, of in sorted(run.independent.items())],
            encode(run.floor),
            list(map(_class_parts, run.conflict_classes)),
            run.placement.value,
        ]
        if isinstance(run, FusedRun):
            parts.append([[each.name, encode(each.plan)] for each in run.members])
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _output_parts(output: FedOutput) -> list[object]:
    classes = sorted(output.classes, key=lambda each: each.topic)
    own = [encode(output.relation), [_parts(each) for each in classes], output.labelled]
    standing = [sorted(output.readers), output.kept_ms] if output.relation.keys else []
    bounds = (output.after_ms, output.until_ms)
    part = [] if bounds == (None, None) else [*bounds]
    # An output that moves gets no ticks, if others read it.
    return [*own, *standing, *part, *(["moves"] if output.moves and output.labelled else [])]


def _class_parts(each: ConflictClass) -> list[object]:
    return [each.id, each.trusted, sorted(each.companies.items())]


def _parts(each: FanOutClass) -> list[object]:
    beyond = [] if each.beyond is None else [hex(each.beyond.bits)]
    ways = [[hex(way.bits) for way in each.ways]] if each.ways else []
    return [each.id, each.topic, hex(each.clearance.bits), each.weak, *beyond, *ways]
