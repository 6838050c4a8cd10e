"""Whether the runner is alive, by whether it goes on counting and by no clock."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from catalog.pulse import PATIENCE_S, Pulse, beat
from catalog.store import Catalog


@dataclass
class Hands:
    """A pulse with hands on the time."""

    catalog: Catalog
    now: float = 0.0

    def __post_init__(self) -> None:
        self.pulse = Pulse(lambda: self.now)

    def beat(self) -> None:
        with self.catalog.bookkeeping() as session:
            beat(session)

    def beats(self, after: float = 0.0) -> bool:
        self.now += after
        with self.catalog.read() as session:
            return self.pulse.beats(session)


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
