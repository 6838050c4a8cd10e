"""The catalog's clock. Its time never goes back while a process runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock

Clock = Callable[[], datetime]
"""Gives the time as the catalog stores it: UTC without a zone."""


def system_time() -> datetime:
    """The time of the system's clock. Somebody may set that clock forward or back."""
    return datetime.now(UTC).replace(tzinfo=None)


def epoch_ms(at: datetime) -> int:
    """A time as the catalog stores it, in ms since 1970."""
    return round(at.replace(tzinfo=UTC).timestamp() * 1_000)


class SteadyClock:
    """Follows the system's clock when it is set forward, and ignores it when it is set back.

    So no session lasts too long, logins are not stopped for too long, and the times in the audit
    log have the order of its entries. A new process starts with the time of the system's clock.
    """

    def __init__(
        self, system: Clock = system_time, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` is a clock that never jumps, even if the system's clock is set."""
        self._system = system
        self._seconds = seconds
        self._lock = Lock()
        self._origin = datetime.min  # noqa: DTZ901 - the catalog's times have no zone

    def __call__(self) -> datetime:
        """The time now."""
        with self._lock:
            # Keep this order: a thread that pauses in between must not set the clock forward.
            shown, passed = self._system(), timedelta(seconds=self._seconds())
            self._origin = max(self._origin, shown - passed)
            return self._origin + passed


utc_now = SteadyClock()
"""The clock of this process."""
