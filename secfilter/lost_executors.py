"""Knows when the executors that a cluster has lost must have ended, and when none is left.

Spark gives up an executor that it does not hear of any more. That says nothing of the executor: if
only the network between them is broken, its tasks go on, and reach Kafka. Such an executor ends
itself when it has not reached its driver for a while (`secfilter.cluster.GONE_S`). Only then a run
may begin in place of one that had tasks there. Otherwise tasks of both could read the same new
records, and the older ones by rules that do not hold any more.

An executor whose end was seen by its worker's machine is waited for no longer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Set
from typing import Any

from pyspark.sql import SparkSession

from secfilter.cluster import GONE_S

FORSAKEN_S = 60.0
_LOOK_S = 1.0
_POLL_S = 0.05
# What Spark's worker says of an executor whose process it saw ending.
_SEEN = "Command exited with code"
_log = logging.getLogger(__name__)


class LostExecutors:
    """The executors that an engine has lost, as far as they may still run."""

    def __init__(
        self,
        removed: Callable[[Set[str]], dict[str, str]],
        since: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """`removed` gives the reason for each executor that Spark has removed, by its id.

        It leaves out those that are known already. Those of the engine's last process may have been
        lost with it, before the time `since`.
        """
        self._removed, self._clock, self._pause = removed, clock, pause
        self._known: set[str] = set()
        self._since = since

    def look(self) -> None:
        """Take note of what was lost since the last look."""
        for executor, reason in self._removed(self._known).items():
            if not reason.startswith(_SEEN):
                _log.warning("an executor is lost, and may still run: %s", reason)
                self._since = self._clock()
            # Last, because others look at the same time.
            self._known.add(executor)

    def await_end(self) -> None:
        """Wait until all that were lost must have ended."""
        while True:
            self.look()
            left_s = self._since + GONE_S - self._clock()
            if left_s <= 0:
                return
            self._pause(min(left_s, _POLL_S))

    def keep_up(self, goes_on: Callable[[], bool]) -> None:
        """Look every second."""
        while goes_on():
            try:
                self.look()
            except Exception as error:  # Spark may be about to end
                _log.warning("lost executors are unknown: %s", type(error).__name__)
            self._pause(_LOOK_S)


class Forsaken:
    """Notices that an engine has had no executor for so long that its cluster has forgotten it.

    A master that starts without its former state ends all executors, and gives no others. A new
    process of the engine gets executors again.
    """

    def __init__(
        self, executors: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`executors` counts those that there are."""
        self._executors, self._clock = executors, clock
        self._since = clock()

    def is_so(self) -> bool:
        """Whether there has been no executor for a minute."""
        now = self._clock()
        if self._executors():
            self._since = now
        return now - self._since > FORSAKEN_S


def running_executors(spark: SparkSession) -> int:
    """The number of executors that Spark has."""
    context: Any = spark.sparkContext._jsc.sc()
    # One of these is the driver.
    return int(context.statusStore().executorList(True).size()) - 1


def removed_executors(spark: SparkSession, known: Set[str]) -> dict[str, str]:
    """The id of each executor that Spark has removed, with the reason; without those known."""
    context: Any = spark.sparkContext._jsc.sc()
    found = context.statusStore().executorList(False)
    removed = {}
    for index in range(found.size()):
        each = found.apply(index)
        executor = str(each.id())
        if executor not in known and each.removeTime().isDefined():
            reason = each.removeReason()
            removed[executor] = str(reason.get()) if reason.isDefined() else "unknown"
    return removed


def has_stopped(spark: SparkSession) -> bool:
    """Whether Spark has stopped by itself, for example because its cluster sent it away."""
    context: Any = spark.sparkContext._jsc.sc()
    return bool(context.isStopped())
