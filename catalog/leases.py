"""Leases: locks across processes that end by themselves when their holder is gone.

Whether a holder is gone is found out by watching its lease, and never by comparing clocks: those of
two machines differ, and each can be put on and back.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Lock

from sqlalchemy import delete

from catalog.errors import Unavailable
from catalog.models import Lease
from catalog.store import Catalog

_POLL_SECONDS = 0.05
_TOKEN_BYTES = 16


class Leases:
    """The leases of one service. Safe to share between threads."""

    def __init__(
        self,
        catalog: Catalog,
        ttl: timedelta,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """A lease that this service saw with one holder for `ttl`, in one wait or several, is over.

        So `ttl` is longer than anybody who is alive holds one. `seconds` goes on evenly.
        """
        self._catalog = catalog
        self._ttl = ttl
        self._seconds = seconds
        self._sleep = sleep
        self._lock = Lock()
        # By name, the other's token and when it was seen first.
        self._seen: dict[str, tuple[str, float]] = {}
        # Own tokens that could not be given back, as the database was away.
        self._left: set[str] = set()

    @contextmanager
    def hold(self, name: str, wait: timedelta = timedelta(seconds=10)) -> Iterator[None]:
        """Hold the lease `name` while the block runs.

        Raises Unavailable where it is not had within `wait`, or where somebody took it over because
        this process stood still for too long: what the block did must then be looked at again.
        """
        token = secrets.token_hex(_TOKEN_BYTES)
        give_up = self._seconds() + wait.total_seconds()
        while not self._try_acquire(name, token):
            if self._seconds() >= give_up:
                raise Unavailable(f"somebody else holds {name!r}; try again")
            self._sleep(_POLL_SECONDS)
        try:
            yield
        except BaseException:
            # What went wrong in the block is what the caller is told.
            with suppress(Unavailable):
                self._release(name, token)
            raise
        if not self._release(name, token):
            raise Unavailable(f"the lease on {name!r} was lost; try again")

    def _try_acquire(self, name: str, token: str) -> bool:
        """Take the lease if nobody has it, or whoever has it is gone."""
        with self._catalog.bookkeeping() as session:
            row = session.get(Lease, name)
            if row is not None and not self._is_over(row):
                return False
            expires_at = self._catalog.clock() + self._ttl
            session.merge(Lease(name=name, holder=token, expires_at=expires_at))
        return True

    def _is_over(self, row: Lease) -> bool:
        with self._lock:
            if row.holder in self._left:
                return True
            token, first = self._seen.get(row.name, ("", 0.0))
            if token != row.holder:
                first = self._seconds()
                self._seen[row.name] = (row.holder, first)
            return self._seconds() - first >= self._ttl.total_seconds()

    def _release(self, name: str, token: str) -> bool:
        """Give the lease back; False where it had been lost."""
        own = delete(Lease).where(Lease.name == name, Lease.holder == token)
        try:
            with self._catalog.bookkeeping() as session:
                return session.execute(own.returning(Lease.name)).first() is not None
        except Unavailable:
            with self._lock:
                self._left.add(token)
            raise
