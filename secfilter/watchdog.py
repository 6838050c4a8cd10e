"""An engine ends itself when it hangs, or has not reached the catalog for too long.

So nobody has to ask it before what it ran runs elsewhere. It also hears of no revocation then.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from subprocess import Popen
from threading import Event, Thread

EXIT_CODE = 71
_LOOK_S = 1.0
_log = logging.getLogger(__name__)


class Watchdog:
    """Calls `end` when `note` was not called for `limit_s` seconds."""

    def __init__(
        self,
        limit_s: float,
        end: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s = limit_s
        self._end = end
        self._clock = clock
        self._last = clock()

    def note(self) -> None:
        """The engine's loop has reached the catalog."""
        self._last = self._clock()

    def look(self) -> bool:
        """End the engine if that is too long ago; whether it was."""
        late = self._clock() - self._last > self._limit_s
        if late:
            self._end()
        return late

    def watch(self, *stopping: Event) -> None:
        """Look every second, in a thread, until one of `stopping` is set."""

        def work() -> None:
            while not any(event.is_set() for event in stopping) and not self.look():
                time.sleep(_LOOK_S)

        Thread(target=work, name="watchdog", daemon=True).start()


def end_at_once(spark: Popen[bytes]) -> None:
    """End Spark's process, and this one, in the middle of whatever they do."""
    _log.error("the engine hangs, or has not reached the catalog for too long: it ends")
    logging.shutdown()
    spark.kill()
    os._exit(EXIT_CODE)
