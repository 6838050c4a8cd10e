"""Who is suspected when an engine dies, how long it is on trial, and who is parked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from catalog.probation import (
    DEATHS_TO_PARK,
    HEALTHY_BEATS,
    LONG_LIFE_BEATS,
    Suspect,
    after_death,
    is_parked,
    next_group,
    proven_after,
    suspects,
)

BEATS = st.integers(0, 100_000)
CHANGED = st.dictionaries(st.integers(1, 50), BEATS, max_size=10)
COUNTS = st.integers(0, 20)
EXECUTIONS = st.sets(st.integers(1, 1_000), min_size=1, max_size=40)
SUSPECTS = st.builds(Suspect, st.integers(1, 50), st.integers(1, 4), COUNTS, COUNTS)

Dies = Callable[[frozenset[int]], bool]


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


@given(st.lists(SUSPECTS, max_size=12, unique_by=lambda each: each.execution))
def test_one_whole_group_is_next_and_what_has_died_most_waits_longest(
    waiting: list[Suspect],
) -> None:
    chosen = next_group(waiting)
    groups = {each.group for each in waiting if each.execution in chosen}
    assert len(groups) == bool(waiting)
    assert chosen == {each.execution for each in waiting if each.group in groups}

    def deaths(group: int) -> int:
        return max(each.deaths for each in waiting if each.group == group)

    least = min((deaths(each.group) for each in waiting), default=0)
    assert all(deaths(group) == least for group in groups)


def test_what_died_alone_three_times_is_parked() -> None:
    assert DEATHS_TO_PARK == 3
    assert [is_parked(deaths) for deaths in range(5)] == [False, False, False, True, True]


@given(EXECUTIONS, st.integers(0, 9))
def test_a_group_that_died_becomes_two_halves_and_nobody_in_it_is_blamed(
    executions: set[int], newest: int
) -> None:
    tried = [Suspect(execution, newest, 1, 2) for execution in executions]
    after = after_death(tried, newest)
    assert {each.execution for each in after} == executions
    if len(executions) == 1:
        assert after == (replace(tried[0], deaths=2),)
        return
    assert {(each.deaths, each.trials) for each in after} == {(1, 2)}
    older, younger = (
        {each.execution for each in after if each.group == group}
        for group in (newest + 1, newest + 2)
    )
    assert max(older) < min(younger) and 0 <= len(older) - len(younger) <= 1


def tried_until_all_is_clear(
    executions: set[int], dies: Dies, most: int
) -> tuple[set[int], set[int], int]:
    """Try all until each is proven or parked; who is proven, who is parked, and the trials."""
    waiting = {execution: Suspect(execution, 1) for execution in executions}
    newest, proven, parked = 1, set[int](), set[int]()
    for trials in range(most + 1):
        group = next_group(waiting.values())
        if not group:
            return proven, parked, trials
        tried = [waiting.pop(execution) for execution in group]
        if not dies(group):
            proven |= group
            continue
        after = after_death(tried, newest)
        newest = max(newest, *(each.group for each in after))
        parked |= {each.execution for each in after if is_parked(each.deaths)}
        waiting |= {each.execution: each for each in after if not is_parked(each.deaths)}
    raise AssertionError(f"it takes more than {most} trials")


@given(EXECUTIONS, st.data())
def test_just_the_killers_are_parked_and_all_others_run_after_few_trials(
    executions: set[int], data: st.DataObject
) -> None:
    killers = data.draw(st.sets(st.sampled_from(sorted(executions))))
    # Halving finds each killer, with one proven half at each step, and it then dies three times.
    steps = ceil(log2(len(executions))) if executions else 0
    most = 1 + len(killers) * (2 * steps + DEATHS_TO_PARK)
    found = tried_until_all_is_clear(executions, lambda group: bool(group & killers), most)
    assert found[:2] == (executions - killers, killers)


@given(EXECUTIONS)
def test_ten_or_more_that_a_dead_engine_had_are_back_with_one_trial(executions: set[int]) -> None:
    assert tried_until_all_is_clear(executions, lambda _: False, 1) == (executions, set(), 1)


@given(EXECUTIONS, st.data())
def test_what_kills_only_together_with_others_is_not_parked(
    executions: set[int], data: st.DataObject
) -> None:
    """As queries that only together need too much memory."""
    room = data.draw(st.integers(1, len(executions)))
    most = 4 * len(executions)
    found = tried_until_all_is_clear(executions, lambda group: len(group) > room, most)
    assert found[:2] == (executions, set())


@given(EXECUTIONS, st.randoms(use_true_random=False))
def test_no_one_is_parked_by_another_even_if_killers_do_not_always_kill(
    executions: set[int], random: object
) -> None:
    killer = min(executions)
    toss = random.random  # type: ignore[attr-defined]

    def dies(group: frozenset[int]) -> bool:
        return killer in group and toss() < 0.7

    _, parked, _ = tried_until_all_is_clear(executions, dies, 4 * len(executions) + 50)
    assert parked <= {killer}
