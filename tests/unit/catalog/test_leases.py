"""Leases: one holder at a time, and none for longer than it renews."""

import threading
from datetime import timedelta

import pytest

from catalog.errors import Unavailable
from catalog.leases import HeldLease, lease
from catalog.models import Lease
from catalog.store import Catalog
from tests.unit.catalog.world import SettableClock

TTL = timedelta(seconds=30)
NOW = timedelta(0)


def test_one_holder_at_a_time(catalog: Catalog) -> None:
    with lease(catalog, "fence.t", TTL) as held:
        assert held.name == "fence.t"
        with (
            pytest.raises(Unavailable, match=r"somebody else holds 'fence\.t'"),
            lease(catalog, "fence.t", TTL, wait=NOW),
        ):
            pytest.fail("two holders")
        with lease(catalog, "fence.u", TTL, wait=NOW):
            pass
    with lease(catalog, "fence.t", TTL, wait=NOW):
        pass
    with catalog.read() as session:
        assert session.query(Lease).all() == []


def test_a_lease_is_given_back_when_the_block_fails(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), lease(catalog, "x", TTL):
        _ = 1 / 0
    with lease(catalog, "x", TTL, wait=NOW):
        pass


def test_a_holder_that_is_gone_loses_its_lease(catalog: Catalog, clock: SettableClock) -> None:
    gone, next_one = HeldLease(catalog, "x", TTL), HeldLease(catalog, "x", TTL)
    assert gone.try_acquire()
    assert gone.try_acquire()
    assert not next_one.try_acquire()
    clock.advance(seconds=29)
    gone.renew()
    clock.advance(seconds=29)
    assert not next_one.try_acquire()
    clock.advance(seconds=1)
    with pytest.raises(Unavailable, match="was lost"):
        gone.renew()
    assert next_one.try_acquire()
    with pytest.raises(Unavailable, match="was lost"):
        gone.renew()
    gone.release()
    next_one.renew()


def test_waiting_ends_when_the_lease_is_free(catalog: Catalog) -> None:
    held = HeldLease(catalog, "x", TTL)
    assert held.try_acquire()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            held.release()

    with lease(catalog, "x", TTL, sleep=sleep):
        assert len(slept) == 3


def test_threads_of_two_services_exclude_each_other(catalog_url: str) -> None:
    services = [Catalog(catalog_url), Catalog(catalog_url)]
    inside, most, done = [0], [0], [0]

    def work(number: int) -> None:
        for _ in range(4):
            with lease(services[number % 2], "x", TTL, wait=timedelta(seconds=60)):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1
                done[0] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (most[0], done[0]) == (1, 16)
    for service in services:
        service.close()
