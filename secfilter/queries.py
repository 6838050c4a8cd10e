"""A run as a running Spark query: its sources, its checkpoint, its trigger, and its stop."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from catalog.plan import source_nodes, sources
from catalog.relation import RelationKind
from catalog.run_counts import ANEW, LOST
from catalog.runs import FusedRun, IngestRun, QueryRun, Run, topics_of, written_by
from secfilter.after_commit import AfterCommit, Drains
from secfilter.background import Task, in_thread
from secfilter.backlog import in_microbatches, of_one_partition
from secfilter.beside import fed_by, side_name
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.class_beginnings import TakenUp, takes_up
from secfilter.going_on import GoingOn, layout_of, owners_of, shape_of
from secfilter.held_runs import HeldRuns
from secfilter.ingest import in_topics
from secfilter.ingest_frames import IngestFrames
from secfilter.kafka_options import GROUP_PREFIX, KafkaOptions, Offsets, written
from secfilter.leftovers import Leftovers
from secfilter.lost_executors import LostExecutors
from secfilter.output_ticker import OutputTicker, proof_of, ticked_of, ticked_topics
from secfilter.pace import Pace
from secfilter.positions import Positions
from secfilter.query_frames import Built, Place, QueryFrames, output_mode
from secfilter.running_query import RunningQuery
from secfilter.seats import Seats
from secfilter.shared_producer import connected, write_out
from secfilter.side_notes import SideNotes
from secfilter.tick_mark import TickMark, new_mark
from secfilter.ticker import Ticker, Ticking, by_ticks
from secfilter.written import ByCommit, ByFlush, Written

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Writer:
    """A query's producer, which it shares with no other, and the topics that it writes."""

    client: str
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Engine:
    """All that a query needs to start."""

    spark: SparkSession
    kafka: KafkaOptions
    positions: Positions
    checkpoints: Checkpoints
    id_key: str = field(repr=False)
    pace: Pace = field(default_factory=Pace)
    # Is called with topics that were made anew under their streams.
    note_anew: Callable[[Sequence[str]], object] = lambda _topics: None
    # Says which senders are drained, and notes it.
    drains: Drains = field(default_factory=Drains)
    # Run -> the producer of its latest query, and what that writes.
    writers: dict[str, Writer] = field(default_factory=dict)
    # What moves the time of streams. Without it, there are no ticks.
    ticking: Ticking | None = None
    # Run -> the DataFrame that was prepared for its next query.
    built: dict[str, Built] = field(default_factory=dict)
    # The executors that its cluster has lost, or None if Spark is one process.
    lost: LostExecutors | None = None
    # Seconds since 1970.
    clock: Callable[[], float] = time.time

    @property
    def repeats(self) -> bool:
        """Whether ingest may put a tuple into lab twice, because machines may be cut off."""
        return self.lost is not None

    def running(self, run: Run, settled: bool) -> RunningQuery:
        """As `start`, as supervision sees it; no other engine runs it until it has ended.

        Raises Unavailable while another engine still runs it.
        """
        # Its members have settled.
        settled = settled or isinstance(run, FusedRun)
        hurried = not settled and not in_microbatches(run) and self.pace.lengthens(run)
        with self.held.hold(run) as (lock, seated):
            self.held.copy_states(seated)
            checkpoint, lost = self._checkpoint(seated)
            if takes_up(seated):
                checkpoint = self.taken_up.begin(seated, checkpoint, self.clock() * 1000)
            began = checkpoint.committed()
            batch_ms = self.pace.real_time_ms(run, settled=settled)
            query = self._start(seated, checkpoint, batch_ms)
            if takes_up(seated):
                self.taken_up.note(seated)
        counted = {LOST: lost, ANEW: int(checkpoint.anew)}
        leftovers = self.leftovers_of(query)
        running = RunningQuery(
            query, leftovers, hurried=hurried, began=began, counted=counted, lock=lock
        )
        running.proof = proof_of(run, query) if isinstance(run, QueryRun) else None
        running.delivered = checkpoint.delivered
        # What comes twice may come late.
        running.expects_late = self.repeats or not _by_ticks(run)
        return running

    def running_side(self, run: Run) -> RunningQuery:
        """As `running`, for a side run: one that has begun goes on there. Raises as `running`.

        That of a query begins at the ends of what it reads, or where its first new class begins.
        What it withholds, its main run withholds and counts too.
        """
        with self.held.hold(run) as (lock, _):
            if isinstance(run, QueryRun):
                ends = partial(self._ends, owners_of(run))
                run = self.taken_up.begin_side(run, ends, self.clock() * 1000)
            checkpoint, lost = self._checkpoint(run)
            if isinstance(run, QueryRun):
                self.sides.note(run.name, fed_by(run))
            began = checkpoint.committed()
            query = self._start(run, checkpoint, self.pace.beside_ms(run))
        leftovers = self.leftovers_of(query)
        return RunningQuery(query, leftovers, began=began, counted={LOST: lost}, lock=lock)

    def _ends(self, topics: Collection[str]) -> Offsets:
        return {topic: written(each) for topic, each in self.positions.ends(topics).items()}

    def leftovers_of(self, query: StreamingQuery) -> Leftovers:
        """What the query's tasks and its producer may still write after its end."""
        writer = self.writers.get(str(query.name), Writer(GROUP_PREFIX))
        return Leftovers(
            self.spark,
            str(query.runId),
            self.kafka.sink(writer.client),
            lambda: not writer.topics <= self.positions.partitions().keys(),
            self.lost,
        )

    @property
    def seats(self) -> Seats:
        """Which fused run carries which run."""
        return Seats(self.checkpoints, self.positions.starting)

    @property
    def sides(self) -> SideNotes:
        """What is kept of side runs."""
        return SideNotes(self.checkpoints)

    @property
    def taken_up(self) -> TakenUp:
        """Which topics the queries have begun to feed."""
        return TakenUp(self.checkpoints, self.sides, self.positions.starting)

    def start(self, run: Run, *, settled: bool = False) -> StreamingQuery:
        """Start the run's query where it had ended; returns when it is initialized.

        Raises PlatformError (a plan that cannot be run, Kafka that does not answer) or Spark's own.
        """
        batch_ms = self.pace.real_time_ms(run, settled=settled)
        return self._start(run, self._checkpoint(run)[0], batch_ms)

    def _start(self, run: Run, checkpoint: Checkpoint, batch_ms: int) -> StreamingQuery:
        if isinstance(run, IngestRun):
            ticks = new_mark(self.id_key)
            frame = self.ingested.frame(run, checkpoint, ticks)
        else:
            built = self.frames.take(run, Place.of(run, checkpoint, checkpoint.layout()))
            ticks, frame = built.ticks, built.frame
        client = f"{GROUP_PREFIX}-{run.name}-{uuid.uuid4().hex[:8]}"
        self.writers[run.name] = Writer(client, _written(run))
        sink = self.kafka.sink(client)
        writer: Any = frame.writeStream.format("kafka").options(**sink)
        writer = writer.queryName(run.name).option("checkpointLocation", str(checkpoint.spark))
        writer = writer.outputMode("update" if isinstance(run, IngestRun) else output_mode(run))
        if in_microbatches(run):
            trigger = writer.trigger(processingTime=f"{self.pace.microbatch_ms} milliseconds")
        else:
            trigger = writer.trigger(realTime=f"{batch_ms} milliseconds")
        query = _started(trigger)
        self._connect(self.writers[run.name].topics, sink)
        if isinstance(run, IngestRun):
            beside = AfterCommit(run, checkpoint, self.positions, self.drains)
            in_thread(f"beside {run.name}", Task(lambda: beside.keep_up(lambda: query.isActive)))
            senders = {sender.id: sender.topic for s in run.streams for sender in s.senders}
            self._tick(run, ticks, self._proof(senders, checkpoint, client), query)
        elif ticked_topics(run):
            read = dict(enumerate(each.relation.topic for each in source_nodes(run.plan)))
            self._tick_outputs(run, ticks.life, self._proof(read, checkpoint, client), query)
        return query

    def _connect(self, topics: frozenset[str], sink: Mapping[str, str]) -> None:
        """Let the query's producer connect while Spark plans, so that no first result waits for it.

        On a cluster the producers are in other processes.
        """
        if self.lost is None and topics:
            connect = partial(connected, self.spark, sink, min(topics))
            in_thread("connect", Task(connect))

    def _proof(self, topics: Mapping[int, str], checkpoint: Checkpoint, client: str) -> Written:
        """Knows what the query with that producer has written. `topics` are what it reads."""
        if self.lost is not None:
            return ByCommit(topics, checkpoint.committed)
        sink = self.kafka.sink(client)
        return ByFlush(lambda: write_out(self.spark, sink))

    def _tick(
        self, run: IngestRun, ticks: TickMark, written: Written, query: StreamingQuery
    ) -> None:
        """Move the time of the run's streams, while its query runs."""
        if self.ticking is None or not by_ticks(run):
            return
        ticker = Ticker(run, ticks, self.ticking, written, self.positions.partitions)
        in_thread(f"ticks {run.name}", Task(lambda: ticker.keep_up(lambda: query.isActive)))

    def _tick_outputs(
        self, run: QueryRun, life: str, written: Written, query: StreamingQuery
    ) -> None:
        """Move the time of the run's outputs, while its query runs."""
        if self.ticking is None:
            return
        names = [each.name for each in run.members] if isinstance(run, FusedRun) else [run.name]
        ticked = ticked_of(
            *(run, query, life),
            written=written,
            held=lambda: any(self.sides.unfinished(side_name(each)) for each in names),
            partitions=self.positions.partitions,
        )
        ticker = OutputTicker(ticked, self.ticking)
        in_thread(f"ticks {run.name}", Task(lambda: ticker.keep_up(lambda: query.isActive)))

    def _checkpoint(self, run: Run) -> tuple[Checkpoint, int]:
        going_on = GoingOn(self.checkpoints, self.positions, self.drains, self.repeats)
        return going_on.checkpoint(run)

    def prepare(self, run: Run) -> None:
        """Build now what `running` will need, while another query of that name still runs.

        What cannot be built fails again when the run starts, and is told then.
        """
        if not isinstance(run, QueryRun):
            return
        current = self.checkpoints.current(run.name, shape_of(run, repeats=self.repeats))
        if current is None:
            return
        try:
            layout, anew = layout_of(run, current)
            if isinstance(run, FusedRun):
                run = self.seats.seen(run)
            if layout is not None and not anew:
                self.frames.prepare(run, Place.of(run, current, layout))
        except Exception as error:  # whatever it is, the query that runs must end in its time
            _log.warning("%s is not prepared: %s", run.name, type(error).__name__)

    @property
    def held(self) -> HeldRuns:
        """The runs that this engine holds."""
        return HeldRuns(self.spark, self.checkpoints, self.seats)

    @property
    def ingested(self) -> IngestFrames:
        """The DataFrames of ingest."""
        return IngestFrames(self._records, self.positions, self.note_anew)

    @property
    def frames(self) -> QueryFrames:
        """The DataFrames of queries."""
        return QueryFrames(
            *(self._lab_records, self.id_key, self.built),
            repeats=self.repeats,
            most=self.pace.microbatch_records,
        )

    def _lab_records(self, topic: str, start: Offsets, most: int | None) -> DataFrame:
        if most is None or len(self.positions.ends([topic])[topic]) > 1:
            return self._records([topic], start)
        return of_one_partition(self._records([topic], start, most=most))

    def _records(
        self,
        topics: list[str],
        begins: Offsets,
        *,
        sent: bool = False,
        headers: bool = True,
        most: int | None = None,
    ) -> DataFrame:
        # Spark wants offsets of exactly the topics that this source reads.
        start = {t: p for t, p in begins.items() if t in topics}
        options = self.kafka.source(topics, start, sent=sent, headers=headers, most=most)
        return self.spark.readStream.format("kafka").options(**options).load()


def _written(run: Run) -> frozenset[str]:
    """The topics that the run writes."""
    if isinstance(run, IngestRun):
        return topics_of(run) - set(in_topics(run))
    return written_by(run)


def _started(writer: Any) -> StreamingQuery:
    # The writer is untyped here: its stubs do not know the real-time trigger.
    query = writer.start()
    if not isinstance(query, StreamingQuery):
        raise TypeError("a sink that is no query")
    return query


def _by_ticks(run: Run) -> bool:
    """Whether ticks of streams alone move the time of the run.

    An output may repeat results after a crash, behind the ticks that came after them.
    """
    return isinstance(run, QueryRun) and all(
        each.by_ticks and each.kind is RelationKind.STREAM for each in sources(run.plan)
    )
