"""Which engines are alive: each counts in the catalog, and who asks sees whether that goes on.

No time is compared across processes: a clock may be put on or back, and hosts differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.models import Heartbeat

PATIENCE_S = 15.0
# An engine that has not reached the catalog for so long ends itself.
ALONE_S = 60.0
# So one that was watched for so long without a beat has ended.
GONE_S = 90.0


def beat(session: Session, engine: str) -> int:
    """Say that the engine is alive; call it inside `Catalog.bookkeeping`. How often it has."""
    row = heartbeat_of(session, engine)
    row.beats += 1
    session.flush()
    return row.beats


def heartbeat_of(session: Session, engine: str) -> Heartbeat:
    """The engine's row, which is made where there is none."""
    row = session.get(Heartbeat, engine, populate_existing=True)
    if row is None:
        row = Heartbeat(engine=engine)
        session.add(row)
        session.flush()
    return row


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of an engine: its beats, and at which seconds it beat last.

    Since `watched` it was looked at all the time, and did not beat.
    """

    beats: int | None
    moved: float
    watched: float


class Pulse:
    """Watches the engines' beats from this process. Safe to share between threads."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` goes on evenly."""
        self._seconds = seconds
        self._lock = Lock()
        self._seen: dict[str, _Seen] = {}
        self._looked = float("-inf")

    def living(self, session: Session) -> frozenset[str]:
        """The engines that were seen to beat a short while ago.

        What was not watched for a while begins anew: one beat may have come just after the last
        look, and none since.
        """
        rows = session.execute(select(Heartbeat.engine, Heartbeat.beats)).all()
        with self._lock:
            now = self._seconds()
            watched = now - self._looked < PATIENCE_S
            self._seen = {e: self._look(e, beats, now, watched=watched) for e, beats in rows}
            self._looked = now
            return frozenset(e for e, seen in self._seen.items() if now - seen.moved < PATIENCE_S)

    def gone(self) -> frozenset[str]:
        """The engines that were watched for so long without a beat that they have ended."""
        with self._lock:
            return frozenset(
                engine
                for engine, seen in self._seen.items()
                if self._looked - seen.watched >= GONE_S
            )

    def _look(self, engine: str, beats: int, now: float, *, watched: bool) -> _Seen:
        # An engine without a row has not beaten yet.
        before = self._seen.get(engine, _Seen(None, float("-inf"), now))
        if before.beats != beats:
            return _Seen(beats, now if watched else before.moved, now)
        return before if watched else _Seen(beats, before.moved, now)
