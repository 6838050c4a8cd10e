"""The runner: what runs becomes what is wanted, run by run, none disturbing another."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from catalog.errors import PlatformError
from catalog.runs import IngestRun, Run, RunReport
from secfilter.background import Begin, in_thread
from secfilter.fused_main import FusedMain
from secfilter.fusion import Fusion
from secfilter.ingest_with_side import IngestWithSide
from secfilter.life import BEAT_S
from secfilter.pace import Pace
from secfilter.query_with_side import QueryWithSide
from secfilter.supervised import Means
from secfilter.topic_faults import Faults, spared
from secfilter.with_side import Starts, WithSide

POLL_S = 0.2
# While a query ends or starts, its readers wait. So it is looked at more often.
LOOKS = 5
# Planning takes the cores; so many starts do it at once.
STARTS_AT_ONCE = 4
_log = logging.getLogger(__name__)


class Stop(Protocol):
    """Tells whether to end (such as `threading.Event`)."""

    def wait(self, timeout: float) -> bool:
        """Sleep for `timeout` seconds, or until it is time to end; True if it is."""


class Watch(Protocol):
    """Tells which topics of runs are not what they should be (such as `TopicWatch`)."""

    def faults(self, runs: Sequence[Run]) -> Faults:
        """Topic -> why it cannot be used; never waits."""


class Ledger(Protocol):
    """Says what should run, and keeps what is so; each call may raise PlatformError."""

    def runs(self) -> Sequence[Run]:
        """What should run now."""

    def report(self, report: RunReport) -> object:
        """What a run does, at each change."""

    def applied(self) -> object:
        """Of all that is wanted each run has reported what it uses."""

    def faults(self, faults: Faults) -> object:
        """The topics that are at fault now."""

    def beat(self) -> object:
        """The engine is alive."""

    def turned(self) -> object:
        """The loop goes on: it has begun another turn, or one of these calls has ended."""


class Runner:
    """Starts, restarts and stops Spark queries.

    `ledger` says what should run, `starts` start the queries, in threads that `begin` begins.
    A query that should stop and whose batch has not ended after `pace.patience_s` is broken off;
    none is waited for. What `watch` finds at fault is left out of what runs.
    """

    def __init__(
        self,
        ledger: Ledger,
        starts: Starts,
        watch: Watch,
        clock: Callable[[], float] = time.monotonic,
        pace: Pace | None = None,
        begin: Begin = in_thread,
    ) -> None:
        self._ledger = ledger
        self._watch = watch
        self._clock = clock
        self._pace = pace or Pace()
        self._means = Means(
            *(starts.main, self._told, clock, self._pace, begin, self._has_room, starts.prepare)
        )
        self._starts = starts
        seating = starts.seating
        self._fusion = None if seating is None else Fusion(self._means, seating)
        self._runs: dict[str, WithSide] = {}
        self._asked = True
        self._next_beat = clock()
        self._faults: Faults = {}
        self._faults_told: Faults | None = None

    def run(self, stop: Stop) -> None:
        """Work until `stop`, then end all queries at their batches' ends."""
        while not self._is_over(stop):
            self._ledger.turned()
            self.step()
        self.end()

    def _is_over(self, stop: Stop) -> bool:
        """Wait until the next turn, or until it is time to end; whether it is."""
        looks = LOOKS if self._changes() else 1
        for _ in range(looks - 1):
            if stop.wait(POLL_S / looks):
                return True
            self._step_all()
        return stop.wait(POLL_S / looks)

    def _changes(self) -> bool:
        if self._fusion is not None and self._fusion.changes:
            return True
        return any(known.changes for known in self._runs.values())

    def step(self) -> None:
        """Look once at what is wanted and at what runs."""
        asked = self._ask()
        if asked is not None:
            self._faults = self._watch.faults(list(asked.values()))
            self._want(asked)
        self._step_all()
        self._keep_ledger(asked is not None)

    def _want(self, asked: Mapping[str, Run]) -> None:
        able = {name: spared(run, self._faults) for name, run in asked.items()}
        wanted = {name: run for name, run in able.items() if run is not None}
        if self._fusion is not None:
            self._fusion.want(wanted, self._faults.keys())
        for name in wanted.keys() - self._runs.keys():
            self._runs[name] = self._made(name, wanted[name])
        for name, known in self._runs.items():
            known.want(wanted.get(name), self._faults.keys())

    def _made(self, name: str, run: Run) -> WithSide:
        if isinstance(run, IngestRun):
            return IngestWithSide(name, self._means, self._starts)
        if self._fusion is None:
            return QueryWithSide(name, self._means, self._starts)
        return QueryWithSide(
            name, self._means, self._starts, partial(FusedMain, fusion=self._fusion)
        )

    def _step_all(self) -> None:
        if self._fusion is not None:
            self._fusion.step()
        for known in list(self._runs.values()):
            known.step()
        self._runs = {name: known for name, known in self._runs.items() if not known.gone}

    def _has_room(self) -> bool:
        alone = sum(known.starts() for known in self._runs.values())
        return alone + (self._fusion.starts() if self._fusion else 0) < STARTS_AT_ONCE

    def _keep_ledger(self, asked: bool) -> None:
        if self._faults != self._faults_told:
            faults = self._faults
            if self._noted("faults of topics", lambda: self._ledger.faults(faults)):
                self._faults_told = faults
        if asked and all(known.told for known in self._runs.values()):
            self._noted("what was applied", self._ledger.applied)
        if self._clock() >= self._next_beat:
            self._next_beat = self._clock() + BEAT_S
            self._noted("that the engine is alive", self._ledger.beat)

    def end(self) -> None:
        """Stop all queries, at their batches' ends where that comes in time."""
        deadline = self._clock() + self._pace.patience_s
        if self._fusion is not None:
            self._fusion.want({})
        for known in self._runs.values():
            known.want(None)
        while self._runs and self._clock() < deadline:
            self._ledger.turned()
            self._step_all()
            time.sleep(0.02)
        self.break_off()

    def break_off(self) -> None:
        """End all queries now, inside their batches."""
        if self._fusion is not None:
            self._fusion.break_off()
        for known in self._runs.values():
            known.break_off()
        self._runs = {}

    def _ask(self) -> dict[str, Run] | None:
        """What is wanted; None while the catalog cannot say: then what runs goes on."""
        try:
            wanted = {run.name: run for run in self._ledger.runs()}
        except PlatformError as error:
            if self._asked:
                _log.warning("what should run is not known now: %s", error.detail)
            self._asked = False
            return None
        finally:
            self._ledger.turned()
        self._asked = True
        return wanted

    def _told(self, report: RunReport) -> bool:
        return self._noted(f"the state of {report.name}", lambda: self._ledger.report(report))

    def _noted(self, what: str, write: Callable[[], object]) -> bool:
        """Write something down; whether that was possible."""
        try:
            write()
        except PlatformError as error:
            _log.warning("%s could not be reported: %s", what, error.detail)
            return False
        finally:
            self._ledger.turned()
        return True
