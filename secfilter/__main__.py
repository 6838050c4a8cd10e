"""An engine's process: `python -m secfilter --settings FILE --engine NAME`, or `--spare`."""

from __future__ import annotations

import argparse
import logging
import math
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING

from catalog.engines import INGEST, PROBATION, all_engines
from catalog.errors import InvalidInput, PlatformError, Unavailable
from catalog.pulse import ALONE_S
from catalog.settings import Settings
from catalog.store import Catalog
from secfilter.catalog_ledger import CatalogLedger
from secfilter.cluster import cluster_of
from secfilter.life import BEAT_S, Life, Signs
from secfilter.lock import await_last_spark, engine_folder, runner_lock
from secfilter.spare import ask_for_spare
from secfilter.waiting import await_work, let_trial_start
from secfilter.watchdog import Watchdog, end_at_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secfilter.serving import Serving
    from secfilter.warm_spark import WarmSpark

_log = logging.getLogger(__name__)
_ENDING = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="secfilter", description="An engine of the data plane.")
    parser.add_argument("--settings", type=Path, required=True, metavar="FILE")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--engine", metavar="NAME", help="ingest, query-1 and so on, or probation")
    which.add_argument(
        "--spare",
        action="store_true",
        help="wait with a warm Spark until an engine for queries needs it",
    )
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # Checkpoints and state hold data, so their files are private. Spark's process inherits this.
    os.umask(0o077)
    stop = threading.Event()
    for number in _ENDING:
        signal.signal(number, lambda *_: stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    try:
        settings = Settings.load(given.settings)
        spare = _be_spare(settings, stop) if given.spare else None
        if given.spare and spare is None:
            return 0
        engine = given.engine if spare is None else spare.engine
        _require_known(engine, settings)
        folder = engine_folder(settings.secfilter.checkpoints, engine)
        spark = None if spare is None else spare.spark
        with runner_lock(folder):
            starts_again = EngineProcess(settings, engine, folder, stop, spark).run()
    except PlatformError as error:
        print(f"secfilter: {error.detail}", file=sys.stderr)
        return error.exit_code
    if starts_again:
        # No trial is left. Start this program again, as a small process that waits without Spark.
        # A signal that comes meanwhile waits until it is handled again.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        own = ["-m", "secfilter", "--settings", str(given.settings), "--engine", engine]
        os.execv(sys.executable, [sys.executable, *own])
    return 0


def _be_spare(settings: Settings, stop: threading.Event) -> WarmSpark | None:
    """Be the spare engine until another one needs it; None on `stop`."""
    # Spark's packages.
    from secfilter.warm_spark import be_spare  # noqa: PLC0415

    return be_spare(settings, stop)


def _serving() -> type[Serving]:
    """What needs Spark's packages, whose import takes a second.

    If the last process has died, others wait until this one has accounted for it. So that comes
    before.
    """
    from secfilter.serving import Serving  # noqa: PLC0415

    return Serving


def _require_known(engine: str, settings: Settings) -> None:
    known = all_engines(settings.secfilter.spaces.count)
    if engine not in known:
        raise InvalidInput(f"there is no engine {engine!r}; there are {', '.join(known)}")


class EngineProcess:
    """One process of an engine, from its start to its normal end.

    `folder` is the engine's own folder. `stop` is set when the process should end. A process that
    was the spare has its `spark` already.
    """

    def __init__(
        self,
        settings: Settings,
        engine: str,
        folder: Path,
        stop: threading.Event,
        spark: SparkSession | None = None,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._folder = folder
        self._stop = stop
        self._spark = spark
        # Its queries may be on trial, and come back soon.
        self._warms_at_once = False
        self._cluster = cluster_of(settings.secfilter, settings.limits.slots, folder)
        self._life = Life(folder)
        self._tries = engine == PROBATION
        # The engine `probation` is ready to work also while it waits.
        self._serves = self._tries
        # Without the audit key, so an engine can change nothing that is audited.
        catalog = Catalog(settings.catalog_url_of(engine))
        self._ledger = CatalogLedger(catalog, engine, self._reached, self._turned)
        self._watchdog: Watchdog | None = None
        self._signs = Signs()

    def run(self) -> bool:
        """Work until it is stopped, or until the spare takes its place.

        Returns whether the program is to start again: the engine `probation` if no run is left.
        """
        has_died = self._note_death()
        # Its suspected executions are handed over while Spark starts.
        await_last_spark(self._folder)
        self._ledger.begin()
        if self._tries:
            self._life.begin()
            if self._spark is None:
                self._await_work()
        elif has_died and self._engine != INGEST:
            # Ingest is never on trial, and everything waits for it.
            let_trial_start(self._ledger, self._stop, BEAT_S)
            self._warms_at_once = True
        if not self._stop.is_set():
            if self._spark is None and ask_for_spare():
                # Nothing runs here yet.
                self._life.end()
                return False
            self._serve()
        self._end()
        return not self._stop.is_set()

    def _await_work(self) -> None:
        """Wait without Spark. How long the catalog is away does not matter then."""
        _serving()
        over = threading.Event()
        self._watch(None, over, limit_s=math.inf)
        await_work(self._ledger, self._stop, BEAT_S)
        over.set()

    def _watch(
        self, process: Popen[bytes] | None, over: threading.Event, limit_s: float = ALONE_S
    ) -> None:
        """Give signs, and end this process when something is wrong, until `over` is set."""
        end = partial(self._end_now, process)
        self._watchdog = Watchdog(limit_s, end, tell=self._signs.give)
        self._watchdog.watch(self._stop, over)

    def _serve(self) -> None:
        self._signs.starting()
        serving = _serving()(
            *(self._settings, self._engine, self._folder, self._ledger, self._cluster),
            spark=self._spark,
            warms_at_once=self._warms_at_once,
        )
        # When it ends, the loop does not turn any more, and that may take long.
        serving.run(self._stop, self._begun, self._signs.starting)

    def _begun(self, process: Popen[bytes], over: threading.Event) -> None:
        self._life.begin()
        self._serves = True
        self._watch(process, over)
        self._ledger.serve()

    def _note_death(self) -> bool:
        """Account for the death of the last process, once. Returns whether it has died."""
        has_died = self._life.has_died()
        if has_died:
            self._ledger.note_death()
            self._life.end()
        return has_died

    def _end_now(self, spark: Popen[bytes] | None, hangs: bool) -> None:
        """End at once. If the catalog cannot be reached, no execution is to blame."""
        if not hangs:
            self._life.end()
        end_at_once(spark, hangs=hangs)

    def _end(self) -> None:
        self._life.end()
        try:
            self._ledger.end()
        except Unavailable as error:
            _log.warning("the engine could not report its end: %s", error.detail)

    def _reached(self) -> None:
        """The catalog has taken a heartbeat."""
        if self._watchdog is not None:
            self._watchdog.note_reached()
        if self._serves:
            self._signs.ready()

    def _turned(self) -> None:
        """The loop goes on."""
        if self._watchdog is not None:
            self._watchdog.note_turn()


if __name__ == "__main__":
    sys.exit(main())
