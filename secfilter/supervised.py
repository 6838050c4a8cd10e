"""One run under supervision: started, restarted at a batch boundary, and after a crash later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from catalog.errors import PlatformError
from catalog.runs import Run, fingerprint
from secfilter.failures import describe
from secfilter.pace import Pace

Report = Callable[[str, str, str, str], object]
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.5, 60.0
# After so many failures in a row a run is called failed; it is tried all the same.
_FAILED_AFTER = 4
# A query that has run for so long has recovered.
_RECOVERED_S = 30.0
# Looking at a query costs a call to the JVM.
_LOOK_S = 1.0
_log = logging.getLogger(__name__)


class Query(Protocol):
    """A running query, as supervision sees it.

    `hurried` tells that its batches would be longer had it been started as settled.
    """

    @property
    def hurried(self) -> bool: ...

    def ended(self) -> bool:
        """Whether it is through, for whatever reason, and nothing of it writes any more."""

    def failure(self) -> BaseException | None:
        """Why it ended, None if it was stopped."""

    def request_stop(self) -> None:
        """Let it end with its batch."""

    def stop(self) -> None:
        """End it now, inside its batch."""

    def withheld(self) -> str:
        """What it has withheld so far, in words; empty for nothing."""


# Starts the query of a run; `settled` tells that the run has not changed for a while.
Starter = Callable[[Run, bool], Query]


class Supervised:
    """What is wanted of one run, and what it does; `step` moves the one towards the other."""

    def __init__(
        self,
        name: str,
        start: Starter,
        report: Callable[[str, str, str, str], bool],
        clock: Callable[[], float],
        pace: Pace,
    ) -> None:
        self.name = name
        self.gone = False
        self._start = start
        self._report = report
        self._clock = clock
        self._pace = pace
        self._changed = clock()
        self._wanted: Run | None = None
        self._mark = ""
        self._running_mark = ""
        self._query: Query | None = None
        self._stopping_since: float | None = None
        self._started = 0.0
        self._failures = 0
        self._not_before = 0.0
        self._next_look = 0.0
        self._said: tuple[str, str, str] | None = None

    @property
    def in_step(self) -> bool:
        """Whether nothing runs that is not wanted as it runs."""
        return self._query is None or self._running_mark == self._mark

    def want(self, run: Run | None) -> None:
        """Say what should run under this name, None for nothing."""
        if run is self._wanted:
            return
        mark = "" if run is None else fingerprint(run)
        if mark != self._mark:
            # What failed before may work now.
            self._not_before, self._failures = min(self._not_before, self._clock()), 0
            self._changed = self._clock()
        self._wanted, self._mark = run, mark

    def step(self) -> None:
        """Do what can be done now without waiting."""
        if self._query is not None:
            self._look(self._query)
        if self._query is None and self._wanted is None:
            self._say("stopped", "")
            self.gone = True
        elif self._query is None and self._wanted is not None:
            if self._clock() >= self._not_before:
                self._launch(self._wanted)
        elif self._query is not None:
            if self._running_mark != self._mark:
                self._leave(self._query, "it has changed")
            elif self._query.hurried and self._has_settled():
                self._leave(self._query, "it has settled, and gets longer batches")

    def break_off(self) -> None:
        """End the query now, inside its batch, all of which is done again later."""
        if self._query is not None:
            self._stop(self._query)
            self._query = None
        self._say("stopped", "stopped inside a batch")
        self.gone = True

    def _launch(self, run: Run) -> None:
        if not self._failures:
            self._say("starting", "")
        try:
            self._query = self._start(run, self._has_settled())
        except Exception as error:  # one run's failure is its own, whatever it is
            self._failed(error)
            return
        self._running_mark, self._started = self._mark, self._clock()
        self._stopping_since = None
        self._next_look = self._started + _LOOK_S
        self._say("running", "")

    def _look(self, query: Query) -> None:
        now = self._clock()
        if self._stopping_since is None and now < self._next_look:
            if self._said is not None and self._said[0] != "running":
                self._say("running", "")
            return
        self._next_look = now + _LOOK_S
        if query.ended():
            self._query = None
            failure = query.failure()
            if failure is not None:
                self._failed(failure)
            elif self._stopping_since is None:
                self._failed(RuntimeError("ended"))
        elif self._stopping_since is not None:
            if now - self._stopping_since > self._pace.patience_s:
                self._stop(query)
                # Asking a query that does not end takes a while, in which nobody else is looked at.
                self._stopping_since = self._clock()
        else:
            if now - self._started > _RECOVERED_S:
                self._failures = 0
            self._say("running", query.withheld())

    def _has_settled(self) -> bool:
        return self._clock() - self._changed >= self._pace.settle_s(self.name)

    def _leave(self, query: Query, reason: str) -> None:
        """Begin to stop what is no longer wanted as it is."""
        if self._stopping_since is None:
            _log.info("%s ends with its batch: %s", self.name, reason)
            self._stopping_since = self._clock()
            query.request_stop()

    def _stop(self, query: Query) -> None:
        """End it inside its batch; one that does not is tried again, and is in nobody's way."""
        try:
            query.stop()
        except Exception as error:  # the engine gives up waiting with an error of its own
            _log.warning("%s does not end: %s", self.name, describe(error))

    def _failed(self, error: BaseException) -> None:
        self._failures += 1
        delay = min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2 ** (self._failures - 1))
        self._not_before = self._clock() + delay
        message = error.detail if isinstance(error, PlatformError) else describe(error)
        _log.warning("%s failed (%d): %s", self.name, self._failures, message)
        self._say("failed" if self._failures >= _FAILED_AFTER else "restarting", message)

    def _say(self, state: str, message: str) -> None:
        """Report what has changed; what could not be reported is tried again."""
        said = (state, message, self._running_mark if self._query else self._mark)
        if said != self._said and self._report(self.name, *said):
            self._said = said
