"""A standby of PostgreSQL takes over: what was confirmed is there, and the catalog goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import select

from catalog.audit import Outcome
from catalog.bootstrap import ensure_initialised
from catalog.durability import durability_warnings
from catalog.errors import Unavailable
from catalog.leases import Leases
from catalog.models import AuditEntry
from catalog.passwords import Passwords
from catalog.store import Catalog
from secadmin.__main__ import TOPIC_LEASE
from tests.audit_key import AUDIT_KEY
from tests.postgresql_pair import Pair, pair
from tests.waiting import wait_until

# Two servers start, and one is copied.
pytestmark = [pytest.mark.long]

WAIT_S = 60.0


@pytest.fixture
def servers() -> Iterator[Pair]:
    with pair() as started:
        yield started


@pytest.fixture
def catalog(servers: Pair, tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog(servers.url, AUDIT_KEY)
    ensure_initialised(opened, tmp_path / "first", Passwords(cost=4))
    yield opened
    opened.close()


def test_what_was_confirmed_is_there_after_a_takeover(servers: Pair, catalog: Catalog) -> None:
    assert [w for w in durability_warnings(catalog.engine) if "synchronous_standby" in w]
    servers.confirm_on_both()
    assert not [w for w in durability_warnings(catalog.engine) if "synchronous" in w]
    confirmed, stop = [], threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            # One that fails may have been made: it was not confirmed.
            with suppress(Unavailable):
                catalog.record("joe", f"act {number}", "system", Outcome.CHANGED)
                confirmed.append((time.monotonic(), f"act {number}"))
            number += 1

    writers = [threading.Thread(target=write) for _ in range(2)]
    for each in writers:
        each.start()
    try:
        wait_until(lambda: len(confirmed) > 50, "changes before", WAIT_S)
        servers.kill_primary()
        killed = time.monotonic()
        servers.promote()
        wait_until(lambda: confirmed[-1][0] > killed + 1, "changes afterwards", WAIT_S)
    finally:
        stop.set()
        for each in writers:
            each.join(WAIT_S)
    with catalog.read() as session:
        there = set(session.scalars(select(AuditEntry.action)))
    assert {action for _, action in confirmed} <= there
    assert catalog.verify_audit().intact
    gap = min(at for at, _ in confirmed if at > killed) - killed
    print(f"first change {gap:.1f} s after the primary was killed")


def test_leases_go_on_after_a_takeover(servers: Pair, catalog: Catalog) -> None:
    """Who holds one keeps it, and nobody else gets it."""
    servers.confirm_on_both()
    one, other = Leases(catalog, TOPIC_LEASE), Leases(catalog, TOPIC_LEASE)
    with one.hold("x"):
        one.beat()
        other.beat()
        servers.kill_primary()
        servers.promote()
        wait_until(lambda: beats(one) and beats(other), "both beat", WAIT_S)
        with pytest.raises(Unavailable, match="somebody else holds"), other.hold("x"):
            pass
    with other.hold("x"):
        pass


def beats(leases: Leases) -> bool:
    try:
        leases.beat()
    except Unavailable:
        return False
    return True
