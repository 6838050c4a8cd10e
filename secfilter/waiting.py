"""The engine for probation waits without Spark until there is something to run alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event
from typing import Protocol

from catalog.errors import PlatformError

# After a trial the next death often comes soon; starting Spark takes seconds.
IDLE_S = 60.0
_LOOK_S = 1.0
_log = logging.getLogger(__name__)


class Trials(Protocol):
    """What the waiting engine needs of the catalog; each call may raise PlatformError."""

    def awaits_trial(self) -> bool:
        """Whether there is something to run alone."""

    def runs(self) -> object:
        """What should run now: nothing."""

    def applied(self) -> object:
        """It is seen what should run."""

    def beat(self) -> object:
        """The engine is alive."""


def await_work(trials: Trials, stop: Event, every_s: float) -> None:
    """Return when there is something to run, or on `stop`; say meanwhile that it is alive."""
    while not stop.wait(every_s):
        try:
            if trials.awaits_trial():
                return
            trials.runs()
            trials.applied()
            trials.beat()
        except PlatformError as error:
            _log.warning("it is not known whether there is something to run: %s", error.detail)


class EndWhenIdle:
    """Tells the loop to end on `stop`, or when nothing was there to run alone for a while."""

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
