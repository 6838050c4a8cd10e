"""Engines wait without Spark: `probation` until a trial is due, and another one for a trial.

When an engine has died, what it ran is on trial (`catalog.probation`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from itertools import count
from threading import Event
from typing import Protocol

from catalog.errors import PlatformError

# After a trial another one is likely soon, and starting Spark takes seconds.
IDLE_S = 60.0
_LOOK_S = 1.0
# Who waits for a trial has results to come. To look costs one short question.
WORK_S = 0.5
# What is on trial may never run, and then its home must not wait for it.
TRIAL_STARTS_S = 20.0
_log = logging.getLogger(__name__)


class Trials(Protocol):
    """The calls of the waiting engine to the catalog. Each may raise PlatformError."""

    def awaits_trial(self) -> bool:
        """Whether an execution waits to run on trial."""

    def trial_starts(self) -> bool:
        """Whether an execution is on trial that does not run there yet."""

    def runs(self) -> Sequence[object]:
        """Read the wanted runs of this engine."""

    def applied(self) -> object:
        """Report that the wanted runs have been read."""

    def beat(self) -> object:
        """Report that the engine is alive."""

    def turned(self) -> object:
        """The loop goes on."""


def await_work(trials: Trials, stop: Event, every_s: float) -> None:
    """Return when an execution waits to run, or on `stop`. Meanwhile report that it is alive."""
    _await(trials, stop, every_s, trials.awaits_trial)


def let_trial_start(
    trials: Trials, stop: Event, every_s: float, clock: Callable[[], float] = time.monotonic
) -> None:
    """Wait while all that this engine ran is on trial, and does not run there yet.

    Two engines that start Spark at once take twice as long, and this one has nothing to run. It
    goes on when it has, or after a while.
    """
    deadline = clock() + TRIAL_STARTS_S

    def has_work() -> bool:
        return clock() >= deadline or bool(trials.runs()) or not trials.trial_starts()

    _await(trials, stop, every_s, has_work)


def _await(trials: Trials, stop: Event, every_s: float, has_work: Callable[[], bool]) -> None:
    looks = round(every_s / WORK_S)
    for look in count(1):
        trials.turned()
        try:
            if has_work():
                return
            if look % looks == 0:
                if not trials.runs():
                    trials.applied()
                trials.beat()
        except PlatformError as error:
            _log.warning("cannot find out whether there is something to run: %s", error.detail)
        if stop.wait(WORK_S):
            return


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
