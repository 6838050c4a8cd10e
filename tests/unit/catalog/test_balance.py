"""Executions go where most room is, and never where there is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catalog.balance import balanced
from catalog.engines import query_engines

SLOTS = st.integers(1, 20)
WANTED = st.dictionaries(st.integers(1, 30), SLOTS, max_size=8)


@given(WANTED, st.lists(st.integers(0, 60), min_size=1, max_size=4), st.integers(1, 60))
def test_no_engine_gets_more_than_it_can_carry(
    wanted: dict[int, int], load: list[int], most: int
) -> None:
    taken = dict(zip(query_engines(len(load)), load, strict=True))
    found = balanced(wanted, taken, most)
    if found is None:
        assert sum(wanted.values()) > 0
        return
    assert found.keys() == wanted.keys()
    for execution, engine in found.items():
        taken[engine] += wanted[execution]
    assert all(taken[engine] <= most for engine in found.values())


@given(WANTED, st.integers(1, 4))
def test_what_fits_is_spread_evenly(wanted: dict[int, int], count: int) -> None:
    engines = dict.fromkeys(query_engines(count), 0)
    found = balanced(wanted, engines, 1_000)
    assert found is not None
    for execution, engine in found.items():
        engines[engine] += wanted[execution]
    largest = max(wanted.values(), default=0)
    assert max(engines.values()) - min(engines.values()) <= largest


def test_one_that_no_engine_can_take_is_refused_with_all() -> None:
    assert balanced({1: 1, 2: 9}, {"query-1": 4, "query-2": 5}, 12) is None
    assert balanced({1: 1, 2: 8}, {"query-1": 4, "query-2": 5}, 12) == {
        1: "query-2",
        2: "query-1",
    }
