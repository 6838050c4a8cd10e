"""What an engine's process does with Spark: it runs what is wanted of the engine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import Popen
from threading import Event

from pyspark.sql import SparkSession

from catalog.engines import INGEST, PROBATION
from catalog.errors import PlatformError
from catalog.settings import SecFilterSettings, Settings
from secfilter.after_commit import Drains
from secfilter.background import Task, in_thread
from secfilter.catalog_ledger import CatalogLedger
from secfilter.checkpoint import Checkpoints
from secfilter.cluster import Cluster
from secfilter.engine_process import end_with, engine_process
from secfilter.kafka_options import kafka_options
from secfilter.lock import lock_engine
from secfilter.lost_executors import (
    Forsaken,
    LostExecutors,
    has_stopped,
    removed_executors,
    running_executors,
)
from secfilter.pace import ON_CLUSTER, OWN, pace_of
from secfilter.past_checkpoints import PastCheckpoints
from secfilter.positions import Positions
from secfilter.queries import Engine
from secfilter.runner import Runner
from secfilter.session import build_session, with_reserve
from secfilter.ticker import Ticking
from secfilter.topic_watch import TopicWatch
from secfilter.waiting import EndWhenIdle
from secfilter.warm_up import OF_INGEST, OF_QUERIES, QUIET_S, WarmUp
from secfilter.with_side import Seating, Starts

_log = logging.getLogger(__name__)


def started(settings: SecFilterSettings, cluster: Cluster | None = None) -> SparkSession:
    """Start the Spark of an engine."""
    options = {k: v for k, v in settings.options.items() if not k.startswith(OWN)}
    return build_session(with_reserve(settings.master), settings.jars, options, cluster)


@dataclass(frozen=True, slots=True)
class Serving:
    """The parts that an engine needs.

    `folder` is its own one. One that was a spare has `spark`, which is warm. One whose queries may
    be on trial `warms_at_once`.
    """

    settings: Settings
    engine: str
    folder: Path
    ledger: CatalogLedger
    cluster: Cluster | None
    spark: SparkSession | None = None
    warms_at_once: bool = False

    def run(
        self,
        stop: Event,
        begun: Callable[[Popen[bytes], Event], object],
        ends: Callable[[], object],
    ) -> None:
        """Start Spark and work until `stop`. The engine `probation` also ends if no run is left.

        `begun` is called when Spark is there, with its process and an event that is set at the end.
        `ends` is called before Spark ends.
        """
        cluster = self.cluster
        # What the last process of this engine had on a cluster may go on for a moment.
        since = time.monotonic()
        spark = self.spark or started(self.settings.secfilter, cluster)
        over = Event()
        process = engine_process(spark)
        try:
            end_with(process, stop, over)
            held = lock_engine(spark, self.folder)
            lost = None if cluster is None else self._lost(spark, since, over)
            runner = self._runner(spark, lost, over)
            begun(process, over)
            self._warm_up(spark, over)
            runner.run(EndWhenIdle(self.ledger, stop) if self._tries else stop)
            del held
        finally:
            over.set()
            ends()
            spark.stop()
            # While it waits for work, only this process may exist, without Spark.
            if not stop.is_set():
                process.kill()
                process.wait()

    @property
    def _tries(self) -> bool:
        return self.engine == PROBATION

    def _warm_up(self, spark: SparkSession, over: Event) -> None:
        """Warm Spark up for the first queries if this engine has nothing else to do yet."""
        if self.engine == PROBATION or self.spark is not None or self.cluster is not None:
            return
        if self._has_runs():
            return

        def is_idle() -> bool:
            return self.ledger.has_nothing and not over.is_set()

        kafka = self.settings.kafka
        login = kafka_options(kafka, kafka.account_of(self.engine), self.folder / ".kafka")
        wait_s = 0.0 if self.warms_at_once else QUIET_S
        exercise = OF_INGEST if self.engine == INGEST else OF_QUERIES
        warm_up = WarmUp(spark, login, self.folder / "warm-up", exercise, is_idle, wait_s)
        in_thread("warm-up", Task(warm_up.run))

    def _has_runs(self) -> bool:
        try:
            return bool(self.ledger.runs())
        except PlatformError:
            # The loop will find out.
            return True

    def _lost(self, spark: SparkSession, since: float, over: Event) -> LostExecutors:
        """What the engine's cluster has lost, once the last process has nothing there any more."""
        lost = LostExecutors(partial(removed_executors, spark), since)
        lost.await_end()
        process = engine_process(spark)
        forsaken = Forsaken(partial(running_executors, spark))

        def goes_on() -> bool:
            if (has_stopped(spark) or forsaken.is_so()) and not over.is_set():
                _log.error("the cluster has sent this engine away, which ends")
                process.kill()
            return not over.is_set()

        in_thread("executors", Task(lambda: lost.keep_up(goes_on)))
        return lost

    def _runner(self, spark: SparkSession, lost: LostExecutors | None, over: Event) -> Runner:
        own, kafka = self.settings.secfilter, self.settings.kafka
        account = kafka.account_of(self.engine)
        config = kafka.client_config(account)
        positions = Positions(config)
        watch = TopicWatch(positions.partitions)
        ledger = self.ledger
        pace = pace_of(own.options, None if lost is None else ON_CLUSTER)
        engine = Engine(
            spark=spark,
            kafka=kafka_options(kafka, account, self.folder / ".kafka"),
            positions=positions,
            note_anew=watch.note_anew,
            drains=Drains(ledger.draining, ledger.drained, ledger.still_read),
            checkpoints=Checkpoints(own.checkpoints),
            id_key=own.id_key_file.read_text().strip(),
            pace=pace,
            lost=lost,
            ticking=Ticking(config, ledger.unfinished, ledger.draining, pace.tick_ms / 1000),
        )
        # On trial each execution shows by itself what it does.
        seating = None if self._tries else Seating(f"fused-{self.engine}", engine.seats)
        if seating is not None and self.engine != INGEST:
            past = PastCheckpoints(engine.held, seating.prefix, ledger.past_runs)
            in_thread("past checkpoints", Task(lambda: past.keep_up(over, pace.past_ms / 1000)))
        starts = Starts(
            *(engine.running, engine.running_side, engine.sides, engine.prepare, seating)
        )
        return Runner(ledger, starts, watch, pace=engine.pace)
