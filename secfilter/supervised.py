"""One run under supervision: started, restarted at a batch boundary, and after a crash later.

What may take long (to start a query, to ask it to stop) is done in threads: `step` never waits.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from catalog.errors import PlatformError
from catalog.runs import NOT_ENDED, QueryRun, Run, RunReport, ends_of, fingerprint, topics_of
from secfilter.background import Begin, Task
from secfilter.beside import fed_by
from secfilter.failures import describe
from secfilter.kafka_options import Offsets
from secfilter.pace import Pace

_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.5, 60.0
# After so many failures in a row a run is called failed; it is tried all the same.
_FAILED_AFTER = 4
# A query that has run for so long has recovered.
_RECOVERED_S = 30.0
# Looking at a query costs a call to the JVM.
_LOOK_S = 1.0
# What a query withholds is written so often at most.
_COUNT_S = 5.0
# How long to wait for the end of a batch whose writer is likely to hang.
_HURT_S = 2.0
# A start that takes longer is no longer waited for by those behind it.
LONG_START_S = 20.0
_log = logging.getLogger(__name__)


class Query(Protocol):
    """A running query, as supervision sees it.

    `hurried` tells that its batches would be longer had it been started as settled. It delivers all
    that comes from `began` on.
    """

    @property
    def hurried(self) -> bool: ...

    @property
    def began(self) -> Offsets: ...

    def flows(self) -> bool:
        """Whether it has begun to read: it is planned, and its code is generated."""

    def ended(self) -> bool:
        """Whether it is through, for whatever reason, and nothing of it writes any more."""

    def failure(self) -> BaseException | None:
        """Why it ended, None if it was stopped."""

    def request_stop(self) -> None:
        """Let it end with its batch."""

    def stop(self) -> None:
        """End it now, inside its batch."""

    def withheld(self) -> Mapping[str, int]:
        """How much it has withheld since this was last asked, by kind."""

    def proven_ms(self) -> int | None:
        """The event time before which all results are written, None if it is not known."""

    def is_through(self, ends: Offsets) -> bool:
        """Whether all is delivered that came before these offsets."""


def nothing(_run: Run) -> None:
    """Prepare nothing."""


# Starts the query of a run; `settled` tells that the run has not changed for a while.
Starter = Callable[[Run, bool], Query]


@dataclass(frozen=True, slots=True)
class Means:
    """What runs are supervised with.

    `report` tells whether it could report; `begin` begins a task; a start waits while `has_room`
    says that there is none. `prepare` does what can be done for a start while the query before it
    still runs. With `breaks_off` a query that should end is ended inside its batch, which is done
    again by the one that goes on.
    """

    start: Starter
    report: Callable[[RunReport], bool]
    clock: Callable[[], float]
    pace: Pace
    begin: Begin
    has_room: Callable[[], bool]
    prepare: Callable[[Run], object] = nothing
    breaks_off: bool = False


class Supervised:
    """What is wanted of one run, and what it does; `step` moves the one towards the other."""

    def __init__(self, name: str, means: Means) -> None:
        self.name = name
        self.gone = False
        # This query goes on as it is, also if it should change: something else comes first.
        self.held = False
        self._start = means.start
        self._report = means.report
        self._clock = means.clock
        self._pace = means.pace
        self._begin = means.begin
        self._has_room = means.has_room
        self._prepare = means.prepare
        self._breaks_off = means.breaks_off
        self._changed = means.clock()
        self._wanted: Run | None = None
        self._mark = ""
        self._topics: frozenset[str] = frozenset()
        # The run whose query runs or is being started: its mark, and what it uses.
        self._run: Run | None = None
        self._run_mark = ""
        self._run_topics: frozenset[str] = frozenset()
        self._query: Query | None = None
        self._starting: Task[Query] | None = None
        self._asking: Task[object] | None = None
        self._stopping_since: float | None = None
        # The fingerprint of what was prepared while the query ends.
        self._prepared = ""
        self._pressed = False
        self._hurt = False
        self._started = 0.0
        self._failures = 0
        self._not_before = 0.0
        self._next_look = 0.0
        self._next_count = 0.0
        self._counted: Counter[str] = Counter()
        self._delivered_ms: int | None = None
        self._through = False
        self._state = ("starting", "")
        self._said: RunReport | None = None

    @property
    def told(self) -> bool:
        """Whether what it does and which topics it uses is reported as it is."""
        return self._said == self._now()

    @property
    def mark(self) -> str:
        """The fingerprint of what is wanted."""
        return self._mark

    @property
    def doing(self) -> Run | None:
        """The run whose query runs or is being started; None between two queries."""
        return None if self._query is None and self._starting is None else self._run

    @property
    def began(self) -> Offsets | None:
        """Where the query that runs began; None while none runs."""
        return None if self._query is None else self._query.began

    @property
    def flows(self) -> bool:
        """Whether the query that runs has begun to read, so that nothing waits for it."""
        return self._query is not None and self._query.flows()

    @property
    def failures(self) -> int:
        """How often it has failed in a row."""
        return self._failures

    def starts(self) -> bool:
        """Whether a start is under way that others wait for."""
        return self._starting is not None and self._clock() - self._started < LONG_START_S

    @property
    def changes(self) -> bool:
        """Whether its query ends or is being started, so that readers may wait for it."""
        ends = self._query is not None and self._stopping_since is not None
        return ends or self._starting is not None

    def want(self, run: Run | None, broken: Collection[str] = ()) -> None:
        """Say what should run under this name, None for nothing.

        What uses a topic that is `broken` may hang in its batch: it is not waited for.
        """
        self._hurt = not self._run_topics.isdisjoint(broken)
        if run is self._wanted:
            return
        mark = "" if run is None else fingerprint(run)
        if mark != self._mark:
            # What failed before may work now.
            self._not_before, self._failures = min(self._not_before, self._clock()), 0
            self._changed = self._clock()
        self._wanted, self._mark, self._topics = run, mark, topics_of(run)

    def step(self) -> None:
        """Do what can be done now without waiting."""
        if self._starting is not None:
            self._take(self._starting)
        elif self._query is not None:
            self._look(self._query)
        if self._query is not None:
            self._leave_if_due(self._query)
        elif self._starting is None and self._wanted is None:
            self._say("stopped", "")
        elif self._wanted is not None and self._may_start():
            self._launch(self._wanted)
        self._tell()
        self.gone = self._state[0] == "stopped" and self._wanted is None and self.told

    def _may_start(self) -> bool:
        due = self._starting is None and self._clock() >= self._not_before
        return due and self._has_room()

    def break_off(self) -> None:
        """End the query now, inside its batch, all of which is done again later."""
        if self._query is not None:
            self._stop(self._query)
            self._query = None
        self._wanted, self._topics, self._run_topics = None, frozenset(), frozenset()
        self._say("stopped", "stopped inside a batch")
        self._tell()
        self.gone = True

    def _launch(self, run: Run) -> None:
        settled = self._has_settled()
        task: Task[Query] = Task(lambda: self._start(run, settled))
        self._run, self._run_mark, self._run_topics = run, self._mark, self._topics
        self._started = self._clock()
        self._starting = task
        if not self._failures:
            self._say("starting", "")
        self._tell()
        self._begin(f"start {self.name}", task)
        self._take(task)

    def _take(self, task: Task[Query]) -> None:
        """Take over the query whose start has returned."""
        if not task.done:
            if self._clock() - self._started > LONG_START_S:
                self._say("starting", "its start takes long")
            return
        self._starting = None
        try:
            self._query = task.result()
        except Exception as error:  # one run's failure is its own, whatever it is
            self._failed(error)
            return
        self._started = self._clock()
        self._stopping_since, self._asking, self._pressed = None, None, False
        self._delivered_ms, self._through = None, False
        self._next_look = self._started + _LOOK_S
        self._say("running", "")

    def _look(self, query: Query) -> None:
        now = self._clock()
        if self._stopping_since is None and now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        if query.ended():
            self._counted.update(query.withheld())
            self._query = None
            failure = query.failure()
            if failure is not None:
                self._failed(failure)
            elif self._stopping_since is None:
                self._failed(RuntimeError("ended"))
            else:
                self._run_topics = frozenset()
                if self._wanted is not None:
                    self._say("starting", "")
        elif self._stopping_since is not None:
            self._prepare_anew()
            self._press(query, self._stopping_since)
        else:
            if now - self._started > _RECOVERED_S:
                self._failures = 0
            self._counted.update(query.withheld())
            self._note_delivered(query)

    def _note_delivered(self, query: Query) -> None:
        """Note which outputs that move have got all that this run delivers to them.

        And whether a backfill has.
        """
        ends = ends_of(self._run)
        proven_ms = query.proven_ms() if ends else None
        if proven_ms is not None:
            passed = (each for each in ends if each < proven_ms)
            self._delivered_ms = max(passed, default=self._delivered_ms)
        wanted = self._wanted
        if (
            isinstance(wanted, QueryRun)
            and wanted.ends is not None
            and self._run_mark == self._mark
        ):
            self._through = query.is_through(wanted.ends)

    def _press(self, query: Query, since: float) -> None:
        """Break off a query whose batch does not end; one that does not is tried again."""
        patience = _HURT_S if self._hurt else self._pace.patience_s
        asked = self._asking is None or self._asking.done
        if asked and self._clock() - since > patience:
            self._stopping_since = self._clock()
            self._ask("stop", lambda: self._stop(query))
            if self._pressed:
                self._say("running", NOT_ENDED)
            self._pressed = True

    def _has_settled(self) -> bool:
        return self._clock() - self._changed >= self._pace.settle_s(self.name)

    def _leave_if_due(self, query: Query) -> None:
        """Begin to stop what is no longer wanted as it is."""
        if self._stopping_since is not None:
            return
        if self.held and self._wanted is not None and not self._hurt:
            return
        if self._run_mark != self._mark:
            reason = "it has changed" if self._wanted is not None else "it is no longer wanted"
        elif query.hurried and self._has_settled():
            reason = "it has settled, and gets longer batches"
        else:
            return
        _log.info("%s ends with its batch: %s", self.name, reason)
        self._stopping_since = self._clock()
        wanted = None if self._hurt else self._wanted
        self._prepared = self._mark
        at_once = self._breaks_off or self._feeds_nobody(query)

        def end() -> None:
            # All readers wait from the end of this query to the start of the next one.
            if wanted is not None:
                self._prepare(wanted)
            if at_once:
                self._stop(query)
            else:
                query.request_stop()

        self._ask("end", end)

    def _feeds_nobody(self, query: Query) -> bool:
        """Whether the query has not begun to read, and would deliver to no topic."""
        return isinstance(self._run, QueryRun) and not fed_by(self._run) and not query.flows()

    def _prepare_anew(self) -> None:
        """Prepare what is wanted now, if it is another run than when the query was asked to end."""
        wanted = self._wanted
        is_free = self._asking is None or self._asking.done
        if wanted is not None and self._prepared != self._mark and is_free and not self._hurt:
            self._prepared = self._mark
            self._ask("prepare", lambda: self._prepare(wanted))

    def _ask(self, what: str, work: Callable[[], object]) -> None:
        self._asking = Task(work)
        self._begin(f"{what} {self.name}", self._asking)

    def _stop(self, query: Query) -> None:
        """End it inside its batch; one that does not is tried again, and is in nobody's way."""
        try:
            query.stop()
        except Exception as error:  # the engine gives up waiting with an error of its own
            _log.warning("%s does not end: %s", self.name, describe(error))

    def _failed(self, error: BaseException) -> None:
        self._failures += 1
        self._run_topics = frozenset()
        delay = min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2 ** (self._failures - 1))
        self._not_before = self._clock() + delay
        message = error.detail if isinstance(error, PlatformError) else describe(error)
        _log.warning("%s failed (%d): %s", self.name, self._failures, message)
        self._say("failed" if self._failures >= _FAILED_AFTER else "restarting", message)

    def _say(self, state: str, message: str) -> None:
        if self._state[0] != state:
            _log.info("%s: %s", self.name, state)
        self._state = (state, message)

    def _now(self) -> RunReport:
        """What is to be reported, but for the counts."""
        mark = self._run_mark if self._query is not None else self._mark
        used = self._topics | self._run_topics
        said = RunReport(self.name, *self._state, mark, used, delivered_ms=self._delivered_ms)
        return replace(said, through=self._through)

    def _tell(self) -> None:
        """Report what has changed; what could not be reported is tried again."""
        now = self._now()
        is_due = bool(self._counted) and self._clock() >= self._next_count
        if now == self._said and not is_due:
            return
        if self._report(replace(now, counted=dict(self._counted))):
            self._said = now
            self._counted.clear()
            self._next_count = self._clock() + _COUNT_S
