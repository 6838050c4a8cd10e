"""The clock of the catalog when somebody changes the system's."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from catalog.clock import SteadyClock, system_time, utc_now
from tests.unit.catalog.world import START


@dataclass
class System:
    """A machine's clock, which can be set, and its counter of seconds, which cannot."""

    shown: datetime = START
    passed: float = 1_000.0

    def wait(self, seconds: float) -> None:
        self.shown += timedelta(seconds=seconds)
        self.passed += seconds


@pytest.fixture
def system() -> System:
    return System()


@pytest.fixture
def steady(system: System) -> SteadyClock:
    return SteadyClock(lambda: system.shown, lambda: system.passed)


def test_it_shows_what_the_system_shows(system: System, steady: SteadyClock) -> None:
    assert steady() == START
    system.wait(90)
    assert steady() == START + timedelta(seconds=90)


def test_it_goes_on_when_the_system_is_put_back(system: System, steady: SteadyClock) -> None:
    steady()
    system.shown -= timedelta(hours=1)
    assert steady() == START
    system.wait(60)
    assert steady() == START + timedelta(minutes=1)
    system.wait(3600)
    assert steady() == START + timedelta(minutes=61)


def test_it_follows_when_the_system_is_put_on(system: System, steady: SteadyClock) -> None:
    steady()
    system.shown += timedelta(hours=1)
    assert steady() == START + timedelta(hours=1)
    system.shown -= timedelta(hours=1)
    system.wait(1)
    assert steady() == START + timedelta(hours=1, seconds=1)


def test_it_is_utc_without_a_zone() -> None:
    before = system_time()
    now = utc_now()
    assert now.tzinfo is None
    assert now - before < timedelta(minutes=1)
