"""The engine `probation` waits without Spark until an execution must run alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event
from typing import Protocol

from catalog.errors import PlatformError

# After a trial another one is likely soon, and starting Spark takes seconds.
IDLE_S = 60.0
_LOOK_S = 1.0
_log = logging.getLogger(__name__)


class Trials(Protocol):
    """The calls of the waiting engine to the catalog. Each may raise PlatformError."""

    def awaits_trial(self) -> bool:
        """Whether an execution waits to run alone."""

    def runs(self) -> object:
        """Read the wanted runs. There are none now."""

    def applied(self) -> object:
        """Report that the wanted runs have been read."""

    def beat(self) -> object:
        """Report that the engine is alive."""

    def turned(self) -> object:
        """The loop goes on."""


def await_work(trials: Trials, stop: Event, every_s: float) -> None:
    """Return when an execution waits to run, or on `stop`. Meanwhile report that it is alive."""
    while not stop.wait(every_s):
        trials.turned()
        try:
            if trials.awaits_trial():
                return
            trials.runs()
            trials.applied()
            trials.beat()
        except PlatformError as error:
            _log.warning("cannot find out whether there is something to run: %s", error.detail)


class EndWhenIdle:
    """Tells the loop to end on `stop`, or if no execution had to run alone for a while."""

    def __init__(
        self, trials: Trials, stop: Event, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._trials = trials
        self._stop = stop
        self._clock = clock
        self._busy = self._looked = clock()

    def wait(self, timeout: float) -> bool:
        """Sleep for `timeout` seconds, or until it is time to end; True if it is."""
        if self._stop.wait(timeout):
            return True
        if self._clock() - self._looked >= _LOOK_S:
            self._looked = self._clock()
            if self._has_work():
                self._busy = self._clock()
        return self._clock() - self._busy >= IDLE_S

    def _has_work(self) -> bool:
        try:
            return self._trials.awaits_trial()
        except PlatformError:
            return True
