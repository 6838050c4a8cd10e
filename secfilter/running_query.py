"""A query that runs in Spark, as supervision sees it, and how it ends."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from catalog.run_counts import LARGE, LATE, NO_ROOM, PATTERN_FULL, UNLABELLED
from secfilter import match, moving
from secfilter.beside import has_caught_up
from secfilter.fanout import TOO_LARGE
from secfilter.fused_fanout import FUSED_LARGE
from secfilter.kafka_options import Offsets
from secfilter.leftovers import Leftovers
from secfilter.lock import FileLock
from secfilter.output_ticker import BatchProof

# The name under which ingest's query counts the records that it refused.
REFUSED = "refused"
_STATES = "org.apache.spark.sql.execution.streaming.runtime"
_log = logging.getLogger(__name__)

# Planning a batch takes a tenth of a second; on a busy machine, or the first time, more.
_PLANNING_S = 2.0


def request_stop(query: StreamingQuery) -> None:
    """Let the query end when its batch ends: nothing is lost and nothing comes twice.

    Spark's own stop interrupts the batch, all of which is then done again. Its loop asks for the
    state between two batches, so setting that ends it there. It also asks
    once a batch has been planned, and interrupts what it is about to start; so a batch that is
    being planned is waited for.
    """
    execution: Any = query._jsq.streamingQuery()
    deadline = time.monotonic() + _PLANNING_S
    while _is_planning(query) and time.monotonic() < deadline:
        time.sleep(0.005)
    execution.state().set(terminated())


def _is_planning(query: StreamingQuery) -> bool:
    """Whether a batch is under way of which no job runs yet."""
    if not query.status["isTriggerActive"]:
        return False
    tracker = SparkSession.active().sparkContext.statusTracker()
    known = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    return not any(job is not None and job.status == "RUNNING" for job in known)


def _reads(query: StreamingQuery) -> bool:
    """Whether all tasks of a batch have begun, or a batch has ended."""
    if query._jsq.lastProgress() is not None:
        return True
    tracker = SparkSession.active().sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    stages = [tracker.getStageInfo(s) for job in jobs if job is not None for s in job.stageIds]
    return any(s is not None and 0 < s.numTasks <= s.numActiveTasks for s in stages)


def terminated() -> Any:
    """The state that lets Spark's loop end."""
    package: Any = SparkSession.active()._jvm
    for part in (*_STATES.split("."), "TERMINATED$", "MODULE$"):
        package = getattr(package, part)
    return package


def _is_through(query: StreamingQuery) -> bool:
    """Whether the query's thread is; `isActive` is false before that."""
    execution: Any = query._jsq.streamingQuery()
    return not bool(execution.queryExecutionThread().isAlive())


class RunningQuery:
    """A query as supervision sees it; `hurried` and `began` as in `supervised.Query`.

    `leftovers` says what a query that has ended may still write. `lock` is given back at the end.
    """

    def __init__(
        self,
        query: StreamingQuery,
        leftovers: Leftovers,
        *,
        hurried: bool = False,
        began: Offsets | None = None,
        counted: Mapping[str, int] | None = None,
        lock: FileLock | None = None,
    ) -> None:
        self.hurried = hurried
        self.began = began or {}
        self._query = query
        self._lock = lock
        self._leftovers = leftovers
        # Knows which results of a query that keeps state are written.
        self.proof: BatchProof | None = None
        # Whether Spark may leave out tuples as late.
        self.expects_late = True
        # Says up to where all results are delivered (`Checkpoint.delivered`).
        self.delivered: Callable[[], Offsets] | None = None
        self._counts = Counter(counted or {})
        self._counted = -1
        # The newest progress that was read: its batch, and when the batch began.
        self._seen: tuple[int, str] | None = None
        self._flows = False

    def flows(self) -> bool:
        """Whether it has begun to read: it is planned, and its code is generated."""
        self._flows = self._flows or _reads(self._query)
        return self._flows

    def ended(self) -> bool:
        """Whether it is through, for whatever reason, and nothing of it writes any more."""
        ended = _is_through(self._query) and self._leftovers.are_gone()
        if ended and self._lock is not None:
            self._lock.give_back()
        return ended

    def failure(self) -> BaseException | None:
        """Why it ended, None if it was stopped."""
        failed: Any = self._query._jsq.exception()
        return None if failed.isEmpty() else QueryFailed(failed.get())

    def request_stop(self) -> None:
        """Let it end with its batch."""
        request_stop(self._query)

    def stop(self) -> None:
        """End it now, inside its batch."""
        self._query.stop()

    def withheld(self) -> Counter[str]:
        """How many tuples were withheld or lost since this was last asked, by kind.

        What only a member of a fused run withheld is under `fused_fanout.count_of`.
        """
        for progress in self._new_progress():
            # While nothing comes, Spark reports under the number of the batch that is to come.
            if progress.batchId > self._counted and "addBatch" in progress.durationMs:
                self._counted = progress.batchId
                self._add(progress.observedMetrics or {})
                late = sum(state.numRowsDroppedByWatermark for state in progress.stateOperators)
                self._counts[LATE] += late
                if late and not self.expects_late:
                    _log.error(
                        "%s: %d tuples came behind a tick that made them late",
                        self._query.name,
                        late,
                    )
        counts, self._counts = +self._counts, Counter()
        return counts

    def _new_progress(self) -> list[StreamingQueryProgress]:
        """What Spark keeps of the last batches, unless the newest was there at the last look.

        Spark writes each of them anew as JSON whenever they are read, and a query is looked at each
        second.
        """
        newest: Any = self._query._jsq.lastProgress()
        seen = None if newest is None else (newest.batchId(), newest.timestamp())
        if seen == self._seen:
            return []
        self._seen = seen
        return self._query.recentProgress

    def proven_ms(self) -> int | None:
        """The event time before which all results are written, None if it is not known."""
        return None if self.proof is None else self.proof.now_ms()

    def is_through(self, ends: Offsets) -> bool:
        """Whether all is delivered that came before these offsets."""
        try:
            return self.delivered is not None and has_caught_up(self.delivered(), ends)
        except (OSError, ValueError) as error:
            _log.warning("%s: how far it has come is not known: %s", self._query.name, error)
            return False

    def _add(self, metrics: Mapping[str, Any]) -> None:
        for name, row in metrics.items():
            if name in (REFUSED, FUSED_LARGE):
                self._counts.update(row.asDict())
            else:
                self._counts[_kind(name)] += row["withheld"]


def _kind(observation: str) -> str:
    """The kind of the tuples that an observation counts."""
    if observation.startswith(moving.FULL):
        return NO_ROOM
    if observation.startswith(match.FULL):
        return PATTERN_FULL
    return LARGE if observation == TOO_LARGE else UNLABELLED


class QueryFailed(Exception):
    """A query's exception in the JVM; its text stays there."""

    def __init__(self, java_exception: Any) -> None:
        super().__init__("the query failed")
        self.java_exception = java_exception
