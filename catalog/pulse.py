"""Whether the runner is alive: it counts in the catalog, and who asks sees whether that goes on.

No time is compared across processes: a clock may be put on or back, and hosts differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from sqlalchemy.orm import Session

from catalog.models import Heartbeat

RUNNER = "runner"
PATIENCE_S = 15.0


def beat(session: Session) -> None:
    """Say that the runner is alive; call it inside `Catalog.bookkeeping`."""
    row = session.get(Heartbeat, RUNNER, populate_existing=True)
    if row is None:
        session.add(Heartbeat(part=RUNNER, beats=1))
    else:
        row.beats += 1
    session.flush()


class Pulse:
    """Watches the runner's beats from this process. Safe to share between threads."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` goes on evenly."""
        self._seconds = seconds
        self._lock = Lock()
        self._beats: int | None = None
        self._looked = self._moved = float("-inf")

    def beats(self, session: Session) -> bool:
        """Whether the runner was seen to beat a short while ago.

        What was not watched for a while begins anew: one beat may have come just after the last
        look, and none since.
        """
        row = session.get(Heartbeat, RUNNER, populate_existing=True)
        found = row.beats if row is not None else None
        with self._lock:
            now = self._seconds()
            watched = now - self._looked < PATIENCE_S
            if watched and found != self._beats:
                self._moved = now
            self._beats, self._looked = found, now
            return now - self._moved < PATIENCE_S
