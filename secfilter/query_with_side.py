"""A query under supervision with its side run, which feeds new topics until the query does."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from catalog.runs import QueryRun, RunReport
from secfilter.beside import fed_by, feed_all, feeds, has_caught_up, lacking, side_name, side_run
from secfilter.supervised import Means, Supervised
from secfilter.with_side import MakeMain, Starts, WithSide

# For so long the main run is not asked to end, so that the side run has the cores to start.
_FIRST_S = 10.0
_log = logging.getLogger(__name__)


class QueryWithSide(WithSide):
    """The main run goes on beside the side run, which ends when the main run has come so far."""

    def __init__(
        self, name: str, means: Means, starts: Starts, make_main: MakeMain = Supervised
    ) -> None:
        super().__init__(name, means, means, starts, make_main)
        # The topics that a side run of a query feeds may get its last batch again.
        self._side_means = replace(self._side_means, breaks_off=True)
        self._clock = means.clock
        # Until it has been looked whether a side run was left behind.
        self._may_have_side = True
        # Since when topics lack that only a side run can feed; None if none lacks.
        self._lacks_since: float | None = None

    def step(self) -> None:
        """Do what can be done now without waiting. The side run starts before the main run ends."""
        new = self._lacking()
        if not new:
            self._lacks_since = None
        elif self._lacks_since is None:
            self._lacks_since = self._clock()
        since = self._lacks_since
        waits = since is not None and self._clock() - since < _FIRST_S
        self._main.held = waits and not self._side_reads(new)
        super().step()

    def _lacking(self) -> frozenset[str]:
        """The topics that a side run is to feed. (A main run that feeds none yet starts anew.)"""
        doing = self._main.doing
        new = lacking(self._wanted, doing)
        starts_anew = new and not fed_by(doing) and not self._main.flows
        return frozenset() if starts_anew else new

    def _side_reads(self, topics: frozenset[str]) -> bool:
        side = self._side
        return side is not None and side.flows and fed_by(side.doing) >= topics

    def _keep_side(self) -> None:
        new = self._lacking()
        if not self._may_have_side and not new:
            return
        self._may_have_side = True
        begun = frozenset(self._kept.unfinished(side_name(self.name)))
        run = side_run(self._wanted, new | begun)
        over = self._is_over(run)
        if self._side is not None or (run is not None and not over):
            self._step_side(None if over else run)
            return
        if over and begun:
            _log.info("%s delivers all that its side run delivered", self.name)
            self._kept.finish(side_name(self.name))
        self._may_have_side = bool(begun) and not over

    def _is_over(self, run: QueryRun | None) -> bool:
        """Whether the main run that runs delivers all that the side run has not delivered."""
        began = self._main.began
        if self._wanted is None or began is None or not self._main.flows:
            return False
        if run is None:
            return True
        reached = self._kept.reached(run.name)
        return feeds(self._main.doing, run) and has_caught_up(reached, began)

    def _do_all(self) -> bool:
        return self._side is not None and feed_all(self._wanted, self._main.doing, self._side.doing)

    def _counted_beside(self, report: RunReport) -> Mapping[str, int]:
        # What it withholds, the main run withholds and counts as well.
        return {}
