"""Deletes the checkpoints of past runs: the state of a removed query holds what it has read."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Event

from catalog.error_places import places_of
from catalog.errors import PlatformError
from secfilter.held_runs import HeldRuns

_OF_QUERIES = re.compile(r"query-\d+(-\d+)?(-side)?")
_LEFT = "checkpoints of removed queries are still there: %s"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PastCheckpoints:
    """What an engine for queries deletes of the checkpoints that all engines share.

    `seating` is how the names of this engine's fused runs begin. `past_runs` says which of these
    runs are past, and which runs begin with a copy of the state of each (`catalog.past_runs`).
    """

    held: HeldRuns
    seating: str
    past_runs: Callable[[Collection[str]], Mapping[str, Sequence[str]]]
    # Those that were past at the last look. By now no engine takes one of them for a wanted run.
    _known: frozenset[str] = frozenset()

    def keep_up(self, over: Event, every_s: float) -> None:
        """Delete them again and again, until it is over. What fails is tried again."""
        while not over.wait(every_s):
            try:
                self.delete()
            except PlatformError as error:
                _log.warning(_LEFT, error.detail)
            except Exception as error:  # a thread must outlive what nobody foresaw
                _log.warning(_LEFT, places_of(error))

    def delete(self) -> None:
        """Delete what is kept of runs that were past at the last look, and that nothing copies.

        Raises Unavailable, and OSError if files cannot be deleted.
        """
        checkpoints = self.held.checkpoints
        checkpoints.clear_dropped()
        names = list(filter(_OF_QUERIES.fullmatch, checkpoints.runs()))
        past = self.past_runs(names) if names else {}
        for name in sorted(self._known & past.keys()):
            if all(checkpoints.previous(copy) is not None for copy in past[name]):
                self.held.drop(name, self.seating)
        self._known = frozenset(past)
