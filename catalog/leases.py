"""Leases: locks across processes that end by themselves when their holder is gone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError

from catalog.errors import Unavailable
from catalog.models import Lease
from catalog.store import Catalog

_POLL_SECONDS = 0.05
_TOKEN_BYTES = 16


class HeldLease:
    """A lease that this holder has, for as long as it renews it in time."""

    def __init__(self, catalog: Catalog, name: str, ttl: timedelta) -> None:
        self.name = name
        self._catalog = catalog
        self._ttl = ttl
        self._holder = secrets.token_hex(_TOKEN_BYTES)

    def try_acquire(self) -> bool:
        """Take the lease if nobody has it or its holder let it run out."""
        now = self._catalog.clock()
        try:
            with self._catalog.bookkeeping() as session:
                row = session.get(Lease, self.name, with_for_update=True)
                if row is not None and row.expires_at > now and row.holder != self._holder:
                    return False
                mine = Lease(name=self.name, holder=self._holder, expires_at=now + self._ttl)
                session.merge(mine)
        except IntegrityError:
            # Two took a lease that nobody had had before; the other one was first.
            return False
        return True

    def renew(self) -> None:
        """Start the time anew. Raises Unavailable where the lease was lost: stop what it guards."""
        now = self._catalog.clock()
        mine = (Lease.name == self.name, Lease.holder == self._holder, Lease.expires_at > now)
        with self._catalog.bookkeeping() as session:
            statement = update(Lease).where(*mine).values(expires_at=now + self._ttl)
            kept = session.execute(statement.returning(Lease.name)).first()
        if kept is None:
            raise Unavailable(f"the lease on {self.name!r} was lost; try again")

    def release(self) -> None:
        """Give the lease back, if it is still this holder's."""
        with self._catalog.bookkeeping() as session:
            session.execute(
                delete(Lease).where(Lease.name == self.name, Lease.holder == self._holder)
            )


@contextmanager
def lease(
    catalog: Catalog,
    name: str,
    ttl: timedelta,
    wait: timedelta = timedelta(seconds=10),
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[HeldLease]:
    """Hold the lease `name` while the block runs; call `renew` in a block that may outlast `ttl`.

    Raises Unavailable where it is not had within `wait`.
    """
    held = HeldLease(catalog, name, ttl)
    give_up = time.monotonic() + wait.total_seconds()
    while not held.try_acquire():
        if time.monotonic() >= give_up:
            raise Unavailable(f"somebody else holds {name!r}; try again")
        sleep(_POLL_SECONDS)
    try:
        yield held
    finally:
        held.release()
