"""Cleans up what an ended query leaves behind in the engine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

from pyspark.sql import SparkSession

from secfilter.background import Task, in_thread
from secfilter.lost_executors import LostExecutors
from secfilter.shared_producer import shared_producer

_POLL_S = 0.02
_AGAIN_S = 1.0
# This many looks in a row must find only records that wait for a missing topic.
_LOOKS = 3
_log = logging.getLogger(__name__)


class Leftovers:
    """The tasks and the unsent records of one query whose thread has ended.

    If the thread is interrupted, the job of its batch keeps running. If a task is killed, records
    that were not sent yet stay in the query's producer. The next query must not start before both
    are over. Otherwise it would write the same again, and ingest would not know what lab topics
    hold.

    Records for a missing topic are given up last, after all others are written. Nothing follows
    them, because the producer is closed.

    On a cluster the producers are in other processes. A batch that has ended leaves nothing in
    them. If it was broken off, they may still write what they had, which then comes twice. But no
    task of the query goes on: not even one on a machine that cannot be reached.
    """

    def __init__(
        self,
        spark: SparkSession,
        group: str,
        sink: Mapping[str, str],
        misses_topic: Callable[[], bool],
        lost: LostExecutors | None = None,
    ) -> None:
        """`group` is the query's job group, and `sink` has the options of its Kafka sink.

        `misses_topic` asks Kafka whether one of the topics that the query writes is missing. `lost`
        are the executors that a cluster has lost.
        """
        self._spark = spark
        self._group = group
        self._sink = sink
        self._misses_topic = misses_topic
        self._lost = lost
        self._clearing: Thread | None = None

    def are_gone(self) -> bool:
        """Whether nothing is left. The first call starts the work. No call waits."""
        if self._clearing is None:
            self._clearing = Thread(target=self._clear, name="leftovers", daemon=True)
            self._clearing.start()
        return not self._clearing.is_alive()

    def _clear(self) -> None:
        while True:
            try:
                self._end_tasks()
                if self._lost is None:
                    self._flush()
                else:
                    self._lost.await_end()
            except Exception as error:  # after any error, something may still be left
                _log.warning(
                    "tasks or records of an ended query are still left: %s", type(error).__name__
                )
                time.sleep(_AGAIN_S)
            else:
                return

    def _end_tasks(self) -> None:
        context: Any = self._spark.sparkContext._jsc.sc()
        context.cancelJobGroup(self._group)
        # The scheduler handles requests in order, so after this job the cancellation is done. One
        # task suffices: by default there would be one for each of the engine's hundreds of slots.
        self._spark.range(0, 1, 1, numPartitions=1).collect()
        # Its events also come after all earlier events.
        context.listenerBus().waitUntilEmpty()
        while self._has_tasks():
            time.sleep(_POLL_S)

    def _has_tasks(self) -> bool:
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(s) for job in jobs if job is not None for s in job.stageIds]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)

    def _flush(self) -> None:
        with shared_producer(self._spark, self._sink) as producer:
            self._write_out(producer)
            producer.close(self._spark._jvm.java.time.Duration.ZERO)  # type: ignore[union-attr]

    def _write_out(self, producer: Any) -> None:
        flushing: Task[object] = Task(producer.flush)
        in_thread("flush", flushing)
        looks = 0
        deadline = time.monotonic() + _AGAIN_S
        while not flushing.done and looks < _LOOKS:
            time.sleep(_POLL_S)
            if time.monotonic() >= deadline:
                deadline = time.monotonic() + _AGAIN_S
                # Kafka may still be writing, so wait for it, however long it takes.
                stuck = self._misses_topic() and not _is_sending(producer)
                looks = looks + 1 if stuck else 0
        if flushing.done:
            flushing.result()
        else:
            _log.warning("a topic is missing, so the records for it are given up")


def _is_sending(producer: Any) -> bool:
    """Whether the producer has sent a request to Kafka and has no answer yet."""
    metrics = producer.metrics()
    sending = [metrics[name] for name in metrics if name.name() == "requests-in-flight"]
    return any(metric.metricValue() > 0 for metric in sending)
