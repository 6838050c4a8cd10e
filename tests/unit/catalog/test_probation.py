"""Who is suspected when an engine dies, how long it runs alone, and who is parked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catalog.probation import (
    DEATHS_TO_PARK,
    HEALTHY_BEATS,
    LONG_LIFE_BEATS,
    Waiting,
    is_parked,
    next_alone,
    proven_after,
    suspects,
)

BEATS = st.integers(0, 100_000)
CHANGED = st.dictionaries(st.integers(1, 50), BEATS, max_size=10)
COUNTS = st.integers(0, 20)


@given(CHANGED, BEATS)
def test_what_has_not_changed_lately_is_not_suspected(changed: dict[int, int], beats: int) -> None:
    old = {execution for execution, at in changed.items() if beats - at >= HEALTHY_BEATS}
    assert suspects(changed, beats, 0) == changed.keys() - old


@given(CHANGED, BEATS, COUNTS)
def test_another_death_suspects_no_fewer(changed: dict[int, int], beats: int, deaths: int) -> None:
    assert suspects(changed, beats, deaths) <= suspects(changed, beats, deaths + 1)


@given(st.integers(1, LONG_LIFE_BEATS))
def test_what_kills_slowly_is_suspected_in_the_end_and_its_older_neighbour_is_not(
    takes: int,
) -> None:
    """The neighbour was started so much earlier that we never look back to it."""
    changed, beats = {1: 10_000_000, 2: 0}, 10_000_000
    for deaths in range(20):
        beats += takes
        found = suspects(changed, beats, deaths)
        if found:
            assert found == {1}
            return
    raise AssertionError("it was never suspected")


@given(COUNTS)
def test_each_trial_is_no_shorter_than_the_last(trials: int) -> None:
    assert 0 < proven_after(trials) <= proven_after(trials + 1)


@given(st.lists(st.builds(Waiting, st.integers(1, 50), COUNTS, COUNTS), max_size=8))
def test_what_has_died_most_waits_longest(waiting: list[Waiting]) -> None:
    chosen = next_alone(waiting)
    assert (chosen is None) == (not waiting)
    least = min((each.deaths for each in waiting), default=0)
    assert chosen is None or chosen in {w.execution for w in waiting if w.deaths == least}


def test_what_died_alone_three_times_is_parked() -> None:
    assert DEATHS_TO_PARK == 3
    assert [is_parked(deaths) for deaths in range(5)] == [False, False, False, True, True]
