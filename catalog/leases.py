"""Leases: locks across processes that end by themselves when their holder is dead.

A service watches a lease to find out whether its holder is dead. It never compares clocks, because
the clocks of two machines differ, and each can be set forward or back.

Each service also has a *pulse*: a row that it changes every two seconds. The leases of a service
whose pulse stands still are over much sooner than those of a service that has no pulse.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Lock

from sqlalchemy import delete, select

from catalog.error_places import places_of
from catalog.errors import PlatformError, Unavailable
from catalog.models import Lease
from catalog.store import Catalog

log = logging.getLogger(__name__)
BEAT_S = 2.0
"""A service changes its pulse so often."""
DEAD_AFTER_S = 10.0
"""A service whose pulse stands still for so long counts as dead."""
_FORGOTTEN_S = 3600.0
_POLL_SECONDS = 0.05
_TOKEN_BYTES = 16
# No lease has such a name.
_PULSE = "pulse of "


class Leases:
    """The leases of one service. Safe to share between threads."""

    def __init__(
        self,
        catalog: Catalog,
        ttl: timedelta,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """A lease is over if this service saw it with one holder for `ttl`, in one wait or more.

        So `ttl` must be longer than any living holder keeps a lease. It is over sooner if the
        holder had a pulse which stands still. `seconds` never jumps.
        """
        self._service = secrets.token_hex(8)
        self._catalog = catalog
        self._ttl = ttl
        self._seconds = seconds
        self._sleep = sleep
        self._lock = Lock()
        # For each name, the token of the other holder and the time when it was seen first.
        self._seen: dict[str, tuple[str, float]] = {}
        # Own tokens that could not be given back, because the database could not be reached.
        self._left: set[str] = set()
        # For each other service, its newest pulse and the time when it was seen first.
        self._pulses: dict[str, tuple[str, float]] = {}
        self._looked = float("-inf")

    @contextmanager
    def hold(self, *names: str, wait: timedelta = timedelta(seconds=10)) -> Iterator[None]:
        """Hold the leases `names`, all of them, while the block runs.

        Raises Unavailable if they are not free within `wait`. Also raises it if another service
        took a lease over because this process was stuck for too long. Then the caller must check
        again what the block did.
        """
        token = f"{self._service}.{secrets.token_hex(_TOKEN_BYTES)}"
        give_up = self._seconds() + wait.total_seconds()
        while (held := self._try_acquire(names, token)) is not None:
            if self._seconds() >= give_up:
                raise Unavailable(f"somebody else holds {held!r}; try again")
            self._sleep(_POLL_SECONDS)
        try:
            yield
        except BaseException:
            # If the block failed, the caller gets the error of the block.
            with suppress(Unavailable):
                self._release(names, token)
            raise
        if lost := self._release(names, token):
            raise Unavailable(f"the lease on {min(lost)!r} was lost; try again")

    def live(self, stop: Event) -> None:
        """Beat until it is time to stop. Other services see that this one is alive."""
        while True:
            try:
                self.beat()
            except PlatformError as failure:
                log.warning("other services cannot see that this one is alive: %s", failure)
            except Exception as error:
                # The thread must outlive what nobody foresaw, or others would take this for dead.
                places = places_of(error)
                log.error("other services cannot see that this one is alive: %s", places)
            if stop.wait(BEAT_S):
                break
        with suppress(PlatformError), self._catalog.bookkeeping() as session:
            session.execute(delete(Lease).where(Lease.name == _PULSE + self._service))

    def beat(self) -> None:
        """Show once that this service is alive, and look at the pulses of the others.

        Raises Unavailable.
        """
        pulse = secrets.token_hex(_TOKEN_BYTES)
        with self._catalog.bookkeeping() as session:
            expires_at = self._catalog.clock() + timedelta(seconds=DEAD_AFTER_S)
            own = Lease(name=_PULSE + self._service, holder=pulse, expires_at=expires_at)
            session.merge(own)
            found = select(Lease.name, Lease.holder).where(Lease.name.startswith(_PULSE))
            pulses = {row.name.removeprefix(_PULSE): row.holder for row in session.execute(found)}
            pulses.pop(self._service, None)
            self._note(pulses)
            long_dead = [_PULSE + each for each in pulses if self._stands_still(each, _FORGOTTEN_S)]
            session.execute(delete(Lease).where(Lease.name.in_(long_dead)))

    def _note(self, pulses: Mapping[str, str]) -> None:
        """Remember since when each of the pulses is as it is."""
        now = self._seconds()
        with self._lock:
            # If this service could not look, the others may not have been able to beat.
            known = self._pulses if now - self._looked < DEAD_AFTER_S / 2 else {}
            self._looked = now
            self._pulses = {
                service: before
                if (before := known.get(service)) is not None and before[0] == pulse
                else (pulse, now)
                for service, pulse in pulses.items()
            }

    def _stands_still(self, service: str, seconds: float) -> bool:
        with self._lock:
            seen = self._pulses.get(service)
            # What was seen counts up to the last look, and not up to now.
            return seen is not None and self._looked - seen[1] >= seconds

    def _try_acquire(self, names: Collection[str], token: str) -> str | None:
        """Take all leases if each is free or its holder is dead. Else the name of one that is held.

        It takes all or none. So two services that wait for each other's leases hold none of them.
        """
        with self._catalog.bookkeeping() as session:
            left = list(session.scalars(select(Lease).where(Lease.name.in_(names))))
            # Look at each of them, so that each is watched from now on.
            if held := [row.name for row in left if not self._is_over(row)]:
                return min(held)
            expires_at = self._catalog.clock() + self._ttl
            for row in left:
                row.holder, row.expires_at = token, expires_at
            session.add_all(
                Lease(name=name, holder=token, expires_at=expires_at)
                for name in set(names) - {row.name for row in left}
            )
        return None

    def _is_over(self, row: Lease) -> bool:
        with self._lock:
            if row.holder in self._left:
                return True
            token, first = self._seen.get(row.name, ("", 0.0))
            if token != row.holder:
                first = self._seconds()
                self._seen[row.name] = (row.holder, first)
            if self._seconds() - first >= self._ttl.total_seconds():
                return True
        return self._stands_still(row.holder.partition(".")[0], DEAD_AFTER_S)

    def _release(self, names: Collection[str], token: str) -> set[str]:
        """Give the leases back. Returns the leases that had been lost."""
        own = delete(Lease).where(Lease.name.in_(names), Lease.holder == token)
        try:
            with self._catalog.bookkeeping() as session:
                return set(names) - set(session.scalars(own.returning(Lease.name)))
        except Unavailable:
            with self._lock:
                self._left.add(token)
            raise
