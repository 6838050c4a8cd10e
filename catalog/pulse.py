"""Finds out which engines are alive: each raises a number in the catalog, and others watch it.

No times of two processes are compared, because a clock may be set, and hosts differ.
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
# An engine that has not reached the catalog for this time ends itself.
ALONE_S = 60.0
# So an engine that was watched for this time without a beat has ended.
GONE_S = 90.0


def beat(session: Session, engine: str) -> int:
    """Raise the engine's number of beats and return it. Call it inside `Catalog.bookkeeping`."""
    row = heartbeat_of(session, engine)
    row.beats += 1
    session.flush()
    return row.beats


def heartbeat_of(session: Session, engine: str) -> Heartbeat:
    """The engine's row. It is made if there is none."""
    row = session.get(Heartbeat, engine, populate_existing=True)
    if row is None:
        row = Heartbeat(engine=engine)
        session.add(row)
        session.flush()
    return row


@dataclass(frozen=True, slots=True)
class _Seen:
    """What this process saw of an engine: its beats, and the time of the last one (s).

    Since `watched` this process looked all the time, and the engine did not beat.
    """

    beats: int | None
    moved: float
    watched: float


class Pulse:
    """Watches the engines' beats from this process. Safe to share between threads."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a clock that never jumps."""
        self._seconds = seconds
        self._lock = Lock()
        self._seen: dict[str, _Seen] = {}
        self._looked = float("-inf")

    def living(self, session: Session) -> frozenset[str]:
        """The engines whose last beat was seen a short time ago.

        If an engine was not watched for a while, watching starts again: its only beat may have come
        just after the last look.
        """
        rows = session.execute(select(Heartbeat.engine, Heartbeat.beats)).all()
        with self._lock:
            now = self._seconds()
            watched = now - self._looked < PATIENCE_S
            self._seen = {e: self._look(e, beats, now, watched=watched) for e, beats in rows}
            self._looked = now
            return frozenset(e for e, seen in self._seen.items() if now - seen.moved < PATIENCE_S)

    def gone(self) -> frozenset[str]:
        """The engines that have ended, because they were watched long enough without a beat."""
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
