"""The runner: what runs becomes what is wanted, run by run, none disturbing another."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from catalog.errors import PlatformError
from catalog.runs import Run
from secfilter.pace import Pace
from secfilter.supervised import Report, Starter, Supervised

POLL_S = 0.2
_log = logging.getLogger(__name__)


class Stop(Protocol):
    """Tells whether to end (such as `threading.Event`)."""

    def wait(self, timeout: float) -> bool:
        """Sleep for `timeout` seconds, or until it is time to end; True if it is."""


class Runner:
    """Starts, restarts and stops Spark queries.

    `wanted` gives what should run, `start` starts one run's query, `report` is told of every change
    of a run's state: name, state (starting, running, restarting, failed, stopped), message without
    data, fingerprint. `applied` is told whenever nothing runs any more that is not wanted. A query
    that should stop and whose batch has not ended after `pace.patience_s` is broken off.
    """

    def __init__(
        self,
        wanted: Callable[[], Sequence[Run]],
        report: Report,
        start: Starter,
        clock: Callable[[], float] = time.monotonic,
        applied: Callable[[], object] = lambda: None,
        pace: Pace | None = None,
    ) -> None:
        self._wanted = wanted
        self._report = report
        self._start = start
        self._applied = applied
        self._clock = clock
        self._pace = pace or Pace()
        self._runs: dict[str, Supervised] = {}
        self._asked = True

    def run(self, stop: Stop) -> None:
        """Work until `stop`, then end all queries at their batches' ends."""
        while not stop.wait(POLL_S):
            self.step()
        self.end()

    def step(self) -> None:
        """Look once at what is wanted and at what runs."""
        wanted = self._ask()
        if wanted is not None:
            for name, known in self._runs.items():
                known.want(wanted.get(name))
            for name in wanted.keys() - self._runs.keys():
                made = Supervised(name, self._start, self._told, self._clock, self._pace)
                made.want(wanted[name])
                self._runs[name] = made
        for known in list(self._runs.values()):
            known.step()
        self._runs = {name: known for name, known in self._runs.items() if not known.gone}
        if wanted is not None and all(known.in_step for known in self._runs.values()):
            self._tell_applied()

    def end(self) -> None:
        """Stop all queries, at their batches' ends where that comes in time."""
        deadline = self._clock() + self._pace.patience_s
        for known in self._runs.values():
            known.want(None)
        while self._runs and self._clock() < deadline:
            for known in self._runs.values():
                known.step()
            self._runs = {name: known for name, known in self._runs.items() if not known.gone}
            time.sleep(0.02)
        for known in self._runs.values():
            known.break_off()
        self._runs = {}

    def _ask(self) -> dict[str, Run] | None:
        """What is wanted; None while the catalog cannot say: then what runs goes on."""
        try:
            wanted = {run.name: run for run in self._wanted()}
        except PlatformError as error:
            if self._asked:
                _log.warning("what should run is not known now: %s", error.detail)
            self._asked = False
            return None
        self._asked = True
        return wanted

    def _tell_applied(self) -> None:
        try:
            self._applied()
        except PlatformError as error:
            _log.warning("what was applied could not be reported: %s", error.detail)

    def _told(self, name: str, state: str, message: str, fingerprint: str) -> bool:
        """Report; whether that was possible."""
        try:
            self._report(name, state, message, fingerprint)
        except PlatformError as error:
            _log.warning("the state of %s could not be reported: %s", name, error.detail)
            return False
        return True
