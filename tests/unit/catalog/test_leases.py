"""Leases: one holder at a time, and the next one once a holder is gone."""

import secrets
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from catalog import leases
from catalog.errors import Unavailable
from catalog.leases import BEAT_S, DEAD_AFTER_S, Leases
from catalog.models import Lease
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY
from tests.unit.catalog.world import SettableClock

TTL = timedelta(seconds=30)
NOW = timedelta(0)


class Seconds:
    """A machine's counter of seconds; a thread that sleeps moves it on."""

    def __init__(self) -> None:
        self.passed = 1_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.passed += seconds


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def service(catalog: Catalog, seconds: Seconds) -> Callable[[], Leases]:
    """Makes the leases of one more service."""
    return lambda: Leases(catalog, TTL, seconds, seconds.sleep)


def is_free(leases: Leases, name: str = "x") -> bool:
    """Whether the lease is to be had."""
    try:
        with leases.hold(name, wait=NOW):
            return True
    except Unavailable as failure:
        assert f"somebody else holds {name!r}" in str(failure)
        return False


def crash(catalog: Catalog) -> None:
    """What a service leaves that is killed while it holds the lease."""
    with catalog.bookkeeping() as session:
        left = Lease(name="x", holder=secrets.token_hex(16), expires_at=catalog.clock() + TTL)
        session.merge(left)


def test_one_holder_at_a_time(catalog: Catalog, service: Callable[[], Leases]) -> None:
    one, other = service(), service()
    with one.hold("x"):
        assert not is_free(one)
        assert not is_free(other)
        assert is_free(other, "y")
    assert is_free(other)
    with catalog.read() as session:
        assert session.query(Lease).all() == []


def test_a_lease_is_given_back_when_the_block_fails(service: Callable[[], Leases]) -> None:
    leases = service()
    with pytest.raises(ZeroDivisionError), leases.hold("x"):
        _ = 1 / 0
    assert is_free(leases)


def test_a_lease_whose_holder_is_gone_is_over_when_it_was_watched_for_long_enough(
    catalog: Catalog, service: Callable[[], Leases], seconds: Seconds
) -> None:
    crash(catalog)
    seconds.sleep(3600)
    watching = service()
    assert not is_free(watching), "it may have been taken a moment ago"
    seconds.sleep(29)
    assert not is_free(watching)
    seconds.sleep(1)
    assert is_free(watching)


def test_a_lease_that_changes_hands_is_watched_anew(
    service: Callable[[], Leases], seconds: Seconds
) -> None:
    watching, busy = service(), service()
    for _ in range(3):
        with busy.hold("x"):
            assert not is_free(watching)
            seconds.sleep(29)
            assert not is_free(watching)


@pytest.mark.parametrize("hours", [-1, 1])
def test_no_clock_is_asked(
    hours: float,
    catalog: Catalog,
    service: Callable[[], Leases],
    clock: SettableClock,
    seconds: Seconds,
) -> None:
    watching = service()
    with service().hold("x"):
        clock.advance(hours=hours)
        assert not is_free(watching), "the holder is alive, whatever its clock shows"
    crash(catalog)
    assert not is_free(watching)
    clock.advance(hours=hours)
    seconds.sleep(30)
    assert is_free(watching), "and gone, whatever ours does"


def test_who_stood_still_for_too_long_is_told(
    service: Callable[[], Leases], seconds: Seconds
) -> None:
    asleep, awake = service(), service()
    with pytest.raises(Unavailable, match="was lost"), asleep.hold("x"):
        assert not is_free(awake)
        seconds.sleep(30)
        assert is_free(awake)


def test_what_could_not_be_given_back_is_taken_again_at_once(
    catalog: Catalog, service: Callable[[], Leases], monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = service()

    def away() -> None:
        raise Unavailable("the catalog cannot be reached")

    with (
        monkeypatch.context() as broken,
        pytest.raises(Unavailable, match="cannot be reached"),
        leases.hold("x"),
    ):
        broken.setattr(catalog, "bookkeeping", away)
    assert not is_free(service())
    assert is_free(leases)


def test_waiting_ends_when_the_lease_is_free(
    service: Callable[[], Leases], catalog: Catalog, seconds: Seconds
) -> None:
    held = service().hold("x")

    def sleep(passed: float) -> None:
        seconds.sleep(passed)
        if len(seconds.slept) == 3:
            held.__exit__(None, None, None)

    held.__enter__()
    with Leases(catalog, TTL, seconds, sleep).hold("x"):
        assert len(seconds.slept) == 3


def test_several_are_had_together_or_not_at_all(service: Callable[[], Leases]) -> None:
    one, other = service(), service()
    with one.hold("b"):
        with (
            pytest.raises(Unavailable, match="somebody else holds 'b'"),
            other.hold("a", "b", "c", wait=NOW),
        ):
            pass
        assert is_free(other, "a")
    with one.hold("a", "b", "c"):
        assert not any(is_free(other, name) for name in "abc")
    assert all(is_free(other, name) for name in "abc")


def test_one_that_was_lost_is_told_and_the_others_are_given_back(
    service: Callable[[], Leases], catalog: Catalog
) -> None:
    asleep = service()
    with (
        pytest.raises(Unavailable, match="lease on 'b' was lost"),
        asleep.hold("a", "b"),
        catalog.bookkeeping() as session,
    ):
        session.get_one(Lease, "b").holder = "another"
    assert is_free(service(), "a")
    assert not is_free(service(), "b")


def beat_together(seconds: Seconds, passed: float, *services: Leases) -> None:
    """Let so many seconds pass, in which these services beat."""
    for _ in range(int(passed / BEAT_S)):
        seconds.sleep(BEAT_S)
        for each in services:
            each.beat()


def test_the_leases_of_a_service_that_beats_no_more_are_over_soon(
    service: Callable[[], Leases], seconds: Seconds
) -> None:
    killed, watching = service(), service()
    held = killed.hold("x")
    held.__enter__()
    beat_together(seconds, BEAT_S, killed, watching)
    beat_together(seconds, DEAD_AFTER_S - BEAT_S, watching)
    assert not is_free(watching), "it may have been only slow"
    beat_together(seconds, BEAT_S, watching)
    assert is_free(watching)


def test_the_leases_of_a_service_that_beats_last(
    service: Callable[[], Leases], seconds: Seconds
) -> None:
    busy, watching = service(), service()
    with busy.hold("x"):
        beat_together(seconds, TTL.total_seconds() - BEAT_S, busy, watching)
        assert not is_free(watching)


def test_who_could_not_look_watches_anew(service: Callable[[], Leases], seconds: Seconds) -> None:
    """The database was away for all: nobody could beat, and nobody is dead."""
    holder, watching = service(), service()
    with holder.hold("x"):
        beat_together(seconds, BEAT_S, holder, watching)
        seconds.sleep(DEAD_AFTER_S + 1)
        watching.beat()
        assert not is_free(watching)
        holder.beat()
        beat_together(seconds, BEAT_S, watching, holder)
        assert not is_free(watching)


def test_a_service_that_lives_shows_it_and_leaves_nothing_behind(
    service: Callable[[], Leases], catalog: Catalog
) -> None:
    living, stop = service(), threading.Event()
    life = threading.Thread(target=living.live, args=(stop,))
    life.start()
    try:
        deadline = time.monotonic() + 30
        while not pulses(catalog):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        stop.set()
        life.join(30)
    assert pulses(catalog) == []


def test_pulses_of_services_that_are_long_dead_go(
    service: Callable[[], Leases],
    catalog: Catalog,
    seconds: Seconds,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "_FORGOTTEN_S", 2 * DEAD_AFTER_S)
    dead, watching = service(), service()
    dead.beat()
    beat_together(seconds, 2 * DEAD_AFTER_S + BEAT_S, watching)
    assert len(pulses(catalog)) == 1


def pulses(catalog: Catalog) -> list[str]:
    with catalog.read() as session:
        return [row.name for row in session.query(Lease).all() if row.name.startswith("pulse of ")]


def test_threads_of_two_services_exclude_each_other(catalog_url: str) -> None:
    catalogs = [Catalog(catalog_url, AUDIT_KEY), Catalog(catalog_url, AUDIT_KEY)]
    services = [Leases(catalog, TTL) for catalog in catalogs]
    inside, most, done = [0], [0], [0]

    def work(number: int) -> None:
        for _ in range(4):
            with services[number % 2].hold("x", wait=timedelta(seconds=60)):
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
    for catalog in catalogs:
        catalog.close()
