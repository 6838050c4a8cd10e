"""Holds a run for the engine that starts it, with the state and the members that it begins with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.errors import Unavailable
from catalog.runs import FusedRun, QueryRun, Run
from secfilter.checkpoint import Checkpoints
from secfilter.lock import FileLock, lock_run
from secfilter.seats import Seats

# A fused run that starts and a member that leaves it look at the same checkpoints.
_SEATING = threading.Lock()


@dataclass(frozen=True, slots=True)
class HeldRuns:
    """The runs that this engine holds, so that no other engine starts them."""

    spark: SparkSession
    checkpoints: Checkpoints
    seats: Seats

    @contextmanager
    def hold(self, run: Run) -> Iterator[tuple[FileLock, Run]]:
        """Hold the run. If what the caller does fails, the run is given back.

        Also gives the run: a fused run takes its members, and begins where they are. Raises
        Unavailable if another engine still runs it.
        """
        with _SEATING if self._is_seated(run) else nullcontext():
            lock = lock_run(self.spark, self.checkpoints.lock_file(run.name))
            with _given_back_on_error(lock):
                run = self._seated(run)
        with _given_back_on_error(lock):
            yield lock, run

    def copy_states(self, run: Run) -> None:
        """Make the copies with which other runs begin, or the one with which this one begins.

        Raises Unavailable if the run to be copied runs. Then it makes the copy at its next start.
        """
        if not isinstance(run, QueryRun):
            return
        for other in run.copies:
            self.checkpoints.copy(run.name, other)
        if run.copied_from is not None and self.checkpoints.previous(run.name) is None:
            left = FileLock(self.spark, self.checkpoints.lock_file(run.copied_from))
            if not left.take():
                raise Unavailable("the state with which it begins is not copied yet")
            try:
                self.checkpoints.copy(run.copied_from, run.name)
            finally:
                left.give_back()

    def drop(self, name: str, seating: str) -> None:
        """Delete all that is kept of a run which is past, unless something still runs it.

        `seating` is how the names of this engine's fused runs begin. What a fused run of another
        engine carries is left to that engine, which may look at it now.
        """
        with _SEATING:
            group = self.seats.group_of(name)
            if group is not None and not group.startswith(f"{seating}-"):
                return
            lock = FileLock(self.spark, self.checkpoints.lock_file(name))
            if lock.take():
                try:
                    self.checkpoints.drop(name)
                finally:
                    lock.give_back()

    def _is_seated(self, run: Run) -> bool:
        alone = isinstance(run, QueryRun) and self.seats.group_of(run.name) is not None
        return alone or isinstance(run, FusedRun)

    def _seated(self, run: Run) -> Run:
        """A fused run with its members; another query has left the fused run that took it."""
        if isinstance(run, FusedRun):
            return self.seats.take(run)
        group = self.seats.group_of(run.name) if isinstance(run, QueryRun) else None
        if group is not None:
            # Another engine may still run it, if this run has just come from there.
            lock = lock_run(self.spark, self.checkpoints.lock_file(group))
            try:
                self.seats.leave(run.name)
            finally:
                lock.give_back()
        return run


@contextmanager
def _given_back_on_error(lock: FileLock) -> Iterator[None]:
    try:
        yield
    except BaseException:
        lock.give_back()
        raise
