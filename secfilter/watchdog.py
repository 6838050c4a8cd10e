"""An engine ends itself if its loop hangs, or has not reached the catalog for too long.

So another engine can take over its executions without asking it. It must also end because it would
not notice a revocation. While it goes on, it gives signs (`secfilter.life`). If it stands still as
a whole, it gives none, and whoever watches it ends it.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from subprocess import Popen
from threading import Event, Thread

EXIT_CODE = 71
# The loop never waits this long, for the catalog or for Spark.
HANGS_S = 20.0
# A process that has not looked for this time was stopped as a whole.
GAP_S, GRACE_S = 5.0, 10.0
_LOOK_S = 1.0
_log = logging.getLogger(__name__)


class Watchdog:
    """Calls `end` if the loop hangs, or has not reached the catalog for `limit_s` seconds.

    `end` gets whether the loop hangs. `tell` is called at each look that finds nothing wrong.
    """

    def __init__(
        self,
        limit_s: float,
        end: Callable[[bool], object],
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[], object] = lambda: None,
    ) -> None:
        self._limit_s = limit_s
        self._end = end
        self._clock = clock
        self._tell = tell
        self._reached = self._turned = self._looked = clock()

    def note_reached(self) -> None:
        """Note that the engine's loop has reached the catalog."""
        self._reached = self._clock()

    def note_turn(self) -> None:
        """Note that the engine's loop has turned, or that a call of it has ended."""
        self._turned = self._clock()

    def look(self) -> bool:
        """End the engine if something is wrong with it. Returns whether it did."""
        now = self._clock()
        if now - self._looked > GAP_S:
            # The whole process was stopped for a while. It may be about to go on.
            self._reached = max(self._reached, now - self._limit_s + GRACE_S)
            self._turned = max(self._turned, now - HANGS_S + GRACE_S)
        self._looked = now
        hangs = now - self._turned > HANGS_S
        wrong = hangs or now - self._reached > self._limit_s
        if wrong:
            self._end(hangs)
        else:
            self._tell()
        return wrong

    def watch(self, stop: Event, over: Event) -> None:
        """Look every second, in a thread, until `over` is set.

        From `stop` on the engine ends its batches. It need not reach the catalog then.
        """

        def work() -> None:
            while not over.is_set():
                if stop.is_set():
                    self._tell_of_end()
                elif self.look():
                    return
                time.sleep(_LOOK_S)

        Thread(target=work, name="watchdog", daemon=True).start()

    def _tell_of_end(self) -> None:
        if self._clock() - self._turned <= HANGS_S:
            self._tell()


def end_at_once(spark: Popen[bytes] | None, *, hangs: bool) -> None:
    """End Spark's process, if there is one, and this one at once, whatever they do."""
    why = "it hangs" if hangs else "it has not reached the catalog for too long"
    _log.error("the engine ends: %s", why)
    logging.shutdown()
    if spark is not None:
        spark.kill()
    os._exit(EXIT_CODE)
