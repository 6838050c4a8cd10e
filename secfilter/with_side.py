"""A run under supervision with its side run: together they are one run to everybody else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from catalog.runs import NOT_ENDED, QueryRun, Run, RunReport
from secfilter.beside import feed_all, feeds, has_caught_up, lacking, side_name, side_run
from secfilter.kafka_options import Offsets
from secfilter.supervised import Means, Query, Starter, Supervised

_STOPPED = "stopped"
_log = logging.getLogger(__name__)


class SideKeeper(Protocol):
    """What is kept of side runs, by their names (such as `SideNotes`)."""

    def unfinished(self, name: str) -> Collection[str]:
        """The topics that it feeds, none where there is nothing to go on with."""

    def reached(self, name: str) -> Offsets:
        """Up to where all is delivered."""

    def finish(self, name: str) -> object:
        """Drop what is kept of it, while it does not run."""


@dataclass(frozen=True, slots=True)
class Starts:
    """How queries are started: those of main runs, and those of side runs.

    `kept` knows how far each side run has come.
    """

    main: Starter
    side: Callable[[QueryRun], Query]
    kept: SideKeeper


class WithSide:
    """What is wanted of one run, and what its main run and its side run do about it."""

    def __init__(self, name: str, means: Means, starts: Starts) -> None:
        self.name = name
        self._report = means.report
        self._kept = starts.kept
        self._wanted: Run | None = None
        self._broken: Collection[str] = ()
        self._said: RunReport | None = None
        self._main_said = RunReport(name, "starting")
        self._side_said = RunReport(side_name(name), _STOPPED)
        self._main = Supervised(name, replace(means, report=self._note_main))

        def start(run: Run, _settled: bool) -> Query:
            if not isinstance(run, QueryRun):
                raise TypeError("only queries have side runs")
            return starts.side(run)

        self._side_means = replace(means, start=start, report=self._note_side)
        self._side: Supervised | None = None
        # Until it has been looked whether a side run was left behind.
        self._may_have_side = True

    @property
    def told(self) -> bool:
        """Whether what is done and which topics are used is reported as it is."""
        side_told = self._side is None or self._side.told
        return self._main.told and side_told and self._said == self._now()

    @property
    def gone(self) -> bool:
        """Whether it is not wanted, nothing of it runs, and that is reported."""
        return self._main.gone and self._side is None and self.told

    def starts(self) -> bool:
        """Whether a start is under way that others wait for."""
        return self._main.starts() or (self._side is not None and self._side.starts())

    def want(self, run: Run | None, broken: Collection[str] = ()) -> None:
        """As `Supervised.want`."""
        self._wanted, self._broken = run, broken
        self._main.want(run, broken)

    def step(self) -> None:
        """Do what can be done now without waiting."""
        self._main.step()
        if self._may_have_side or lacking(self._wanted, self._main.doing):
            self._keep_side()
        if self._main.told and (self._side is None or self._side.told):
            self._tell({})

    def break_off(self) -> None:
        """End both now, inside their batches; both go on there later."""
        if self._side is not None:
            self._side.break_off()
            self._side = None
        self._main.break_off()

    def _keep_side(self) -> None:
        """Let the side run do what it should, and end where it has done its work."""
        self._may_have_side = True
        new = lacking(self._wanted, self._main.doing)
        begun = frozenset(self._kept.unfinished(side_name(self.name)))
        run = side_run(self._wanted, new | begun)
        over = self._is_over(run)
        if self._side is None and run is not None and not over:
            self._side = Supervised(side_name(self.name), self._side_means)
        if self._side is not None:
            self._side.want(None if over else run, self._broken)
            self._side.step()
            if self._side.gone:
                self._side = None
            return
        if over and begun:
            _log.info("%s delivers all that its side run delivered", self.name)
            self._kept.finish(side_name(self.name))
        self._may_have_side = bool(begun) and not over

    def _is_over(self, run: QueryRun | None) -> bool:
        """Whether the main run that runs delivers all that the side run has not delivered."""
        began = self._main.began
        if self._wanted is None or began is None:
            return False
        if run is None:
            return True
        reached = self._kept.reached(run.name)
        return feeds(self._main.doing, run) and has_caught_up(reached, began)

    def _note_main(self, report: RunReport) -> bool:
        self._main_said = replace(report, counted={})
        return self._tell(report.counted)

    def _note_side(self, report: RunReport) -> bool:
        # What it withholds, the main run withholds and counts as well.
        self._side_said = replace(report, counted={})
        return self._tell({})

    def _now(self) -> RunReport:
        """What is to be reported of both, but for the counts."""
        main, side = self._main_said, self._side_said
        state, message = main.state, main.message
        if state == _STOPPED and side.state != _STOPPED:
            state, message = "running", side.message
        if side.message == NOT_ENDED:
            message = NOT_ENDED
        mark = self._main.mark if self._feed_all() else main.fingerprint
        return RunReport(self.name, state, message, mark, main.topics | side.topics)

    def _feed_all(self) -> bool:
        if self._side is None or self._side.began is None or self._main.began is None:
            return False
        return feed_all(self._wanted, self._main.doing, self._side.doing)

    def _tell(self, counted: Mapping[str, int]) -> bool:
        """Report what has changed; whether nothing is left to be reported."""
        now = self._now()
        if now == self._said and not counted:
            return True
        if not self._report(replace(now, counted=dict(counted))):
            return False
        self._said = now
        return True
