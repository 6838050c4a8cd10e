"""Which engines are alive, by whether they go on counting and by no clock."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from catalog.pulse import ALONE_S, GONE_S, PATIENCE_S, Pulse, beat
from catalog.store import Catalog

ENGINE, OTHER = "query-1", "query-2"


@dataclass
class Hands:
    """A pulse with hands on the time."""

    catalog: Catalog
    now: float = 0.0

    def __post_init__(self) -> None:
        self.pulse = Pulse(lambda: self.now)

    def beat(self, engine: str = ENGINE) -> None:
        with self.catalog.bookkeeping() as session:
            beat(session, engine)

    def living(self, after: float = 0.0) -> frozenset[str]:
        self.now += after
        with self.catalog.read() as session:
            return self.pulse.living(session)

    def beats(self, after: float = 0.0) -> bool:
        return ENGINE in self.living(after)


@pytest.fixture
def hands(catalog: Catalog) -> Hands:
    return Hands(catalog)


def test_nothing_is_alive_that_was_not_seen_to_beat(hands: Hands) -> None:
    assert not hands.beats()
    hands.beat()
    assert hands.beats(), "its first"
    again = Hands(hands.catalog)
    assert not again.beats(), "who knows when that was"
    hands.beat()
    assert again.beats(1)


def test_what_beats_no_more_is_not_alive(hands: Hands) -> None:
    hands.beats()
    hands.beat()
    assert hands.beats(1)
    assert hands.beats(PATIENCE_S - 1)
    assert not hands.beats(1)
    hands.beat()
    assert hands.beats(1)


def test_a_beat_of_a_time_without_looks_is_no_news(hands: Hands) -> None:
    hands.beat()
    hands.beats()
    hands.beat()
    assert not hands.beats(PATIENCE_S), "it may have died right after the last look"
    hands.beat()
    assert hands.beats(1)


def test_each_engine_has_a_pulse_of_its_own(hands: Hands) -> None:
    hands.living()
    hands.beat(ENGINE)
    hands.beat(OTHER)
    assert hands.living(1) == {ENGINE, OTHER}
    for _ in range(2):
        hands.beat(OTHER)
        found = hands.living(PATIENCE_S - 1)
    assert found == {OTHER}


def test_an_engine_is_gone_once_it_was_watched_for_longer_than_it_can_live(hands: Hands) -> None:
    assert GONE_S > ALONE_S + PATIENCE_S
    hands.beat()
    hands.living()
    hands.living(GONE_S)
    assert hands.pulse.gone() == frozenset(), "nobody looked meanwhile"
    for _ in range(int(GONE_S)):
        assert hands.pulse.gone() == frozenset()
        hands.living(1)
    assert hands.pulse.gone() == {ENGINE}
    hands.beat()
    hands.living(1)
    assert hands.pulse.gone() == frozenset()
