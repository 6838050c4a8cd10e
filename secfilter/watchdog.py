"""An engine ends itself if it hangs, or has not reached the catalog for too long.

So another engine can take over its executions without asking it. It must also end because it would
not notice a revocation.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from subprocess import Popen
from threading import Event, Thread

EXIT_CODE = 71
# The loop never waits this long for the catalog.
HANGS_S = 30.0
# A process that has not looked for this time was stopped as a whole.
GAP_S, GRACE_S = 5.0, 10.0
_LOOK_S = 1.0
_log = logging.getLogger(__name__)


class Watchdog:
    """Calls `end` if the catalog was not reached for `limit_s` seconds.

    `end` gets whether the engine hangs, which means that its loop does not turn either.
    """

    def __init__(
        self,
        limit_s: float,
        end: Callable[[bool], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s = limit_s
        self._end = end
        self._clock = clock
        self._reached = self._turned = self._looked = clock()

    def note_reached(self) -> None:
        """Note that the engine's loop has reached the catalog."""
        self._reached = self._clock()

    def note_turn(self) -> None:
        """Note that the engine's loop has turned."""
        self._turned = self._clock()

    def look(self) -> bool:
        """End the engine if it has not reached the catalog for too long. Returns whether it did."""
        now = self._clock()
        if now - self._looked > GAP_S:
            # The whole process was stopped for a while. It may be about to reach the catalog.
            self._reached = max(self._reached, now - self._limit_s + GRACE_S)
        self._looked = now
        late = now - self._reached > self._limit_s
        if late:
            self._end(now - self._turned > HANGS_S)
        return late

    def watch(self, *stopping: Event) -> None:
        """Look every second, in a thread, until one of `stopping` is set."""

        def work() -> None:
            while not any(event.is_set() for event in stopping) and not self.look():
                time.sleep(_LOOK_S)

        Thread(target=work, name="watchdog", daemon=True).start()


def end_at_once(spark: Popen[bytes], *, hangs: bool) -> None:
    """End Spark's process and this one at once, whatever they do."""
    why = "it hangs" if hangs else "it has not reached the catalog for too long"
    _log.error("the engine ends: %s", why)
    logging.shutdown()
    spark.kill()
    os._exit(EXIT_CODE)
