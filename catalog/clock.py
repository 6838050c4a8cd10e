"""The time that the catalog goes by, which is not put back while a process runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock

Clock = Callable[[], datetime]
"""Gives the time as the catalog stores it: UTC without a zone."""


def system_time() -> datetime:
    """What the system's clock shows; somebody may put it on or back."""
    return datetime.now(UTC).replace(tzinfo=None)


class SteadyClock:
    """Follows the system's clock when that is put on, and goes on as before when it is put back.

    So no session outlives its time, no stop of logins lasts longer than it should, and the times in
    the audit log are in the order of its entries. Only a new process begins with the time that the
    system's clock then shows.
    """

    def __init__(
        self, system: Clock = system_time, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` goes on evenly, whatever is done to the system's clock."""
        self._system = system
        self._seconds = seconds
        self._lock = Lock()
        self._origin = datetime.min  # noqa: DTZ901 - the catalog's times have no zone

    def __call__(self) -> datetime:
        """The time now."""
        with self._lock:
            # In this order: a thread that is held up in between must not put the clock on.
            shown, passed = self._system(), timedelta(seconds=self._seconds())
            self._origin = max(self._origin, shown - passed)
            return self._origin + passed


utc_now = SteadyClock()
"""The clock of this process."""
