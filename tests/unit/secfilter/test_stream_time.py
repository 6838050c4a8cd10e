"""The time of a stream from the echoes of its ticks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secfilter.stream_time import (
    NO_SENDER,
    Echo,
    StreamTime,
    echo_of,
    next_wait_s,
    without_sender,
)

LIFE = "0123456789abcdef" * 2
PLACES = [(1, 0), (1, 1), (2, 0)]


def echo(place: tuple[int, int], offset: int, time_ms: int) -> Echo:
    return Echo(LIFE, *place, offset, time_ms)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"1:2:3:4",
        LIFE.encode(),
        f"{LIFE}:1:2:3:x".encode(),
        f"{LIFE}:1:2:3:4:5".encode(),
    ],
)
def test_what_is_no_echo_is_none(value: bytes | None) -> None:
    assert echo_of(value) is None


def test_an_echo_is_read_as_it_is_written() -> None:
    assert echo_of(f"{LIFE}:7:2:31:1800000000500".encode()) == Echo(
        LIFE, 7, 2, 31, 1_800_000_000_500
    )
    assert echo_of(without_sender(LIFE)) == Echo(LIFE, NO_SENDER, 0, 0, 0)


@st.composite
def histories(draw: st.DrawFn) -> dict[tuple[int, int], list[Echo]]:
    """The echoes of each place: offsets and times rise."""
    found: dict[tuple[int, int], list[Echo]] = {}
    for place in PLACES:
        steps = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=5))
        offset = time_ms = 0
        found[place] = []
        for more, later in steps:
            offset, time_ms = offset + more, time_ms + later
            found[place].append(echo(place, offset, time_ms))
    return found


@given(histories(), st.randoms(use_true_random=False))
def test_time_is_that_of_the_place_that_is_furthest_behind(
    history: dict[tuple[int, int], list[Echo]], random: object
) -> None:
    """Whatever the order in which echoes come, and however often."""
    all_echoes = [each for echoes in history.values() for each in (*echoes, *echoes[:2])]
    random.shuffle(all_echoes)  # type: ignore[attr-defined]
    time = StreamTime()
    for each in all_echoes:
        time.hear(each)
    expected = (
        min(echoes[-1].time_ms for echoes in history.values()) if all(history.values()) else None
    )
    assert time.time_ms(PLACES) == expected


@given(histories())
def test_time_never_goes_back(history: dict[tuple[int, int], list[Echo]]) -> None:
    time, newest = StreamTime(), -1
    for each in (e for echoes in history.values() for e in echoes):
        time.hear(each)
        now = time.time_ms(PLACES)
        assert now is None or now >= newest
        newest = newest if now is None else now


def test_a_stream_without_places_has_no_time() -> None:
    assert StreamTime().time_ms([]) is None


def heard(*offsets: int) -> StreamTime:
    time = StreamTime()
    for offset in offsets:
        time.hear(echo((1, 0), offset, offset))
    return time


@pytest.mark.parametrize(
    ("first", "then", "busy"), [((4,), (5, 6), False), ((4,), (5, 7), True), ((4,), (4,), False)]
)
def test_a_stream_is_busy_if_something_stands_between_ticks(
    first: Sequence[int], then: Sequence[int], busy: bool
) -> None:
    time = heard(*first)
    assert time.take_busy()
    for offset in then:
        time.hear(echo((1, 0), offset, offset))
    assert time.take_busy() == busy


def test_a_place_is_read_up_when_its_last_tick_is_echoed() -> None:
    time, places = heard(4), [(1, 0)]
    assert not time.has_heard(places, {})
    assert not time.has_heard(places, {(1, 0): 5})
    assert time.has_heard(places, {(1, 0): 4})
    assert not time.has_heard([*places, (2, 0)], {(1, 0): 4, (2, 0): 0})


def test_quiet_streams_get_fewer_ticks() -> None:
    waits = [1.0]
    for _ in range(4):
        waits.append(next_wait_s(waits[-1], 1.0, 5.0, busy=False))
    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert next_wait_s(5.0, 1.0, 5.0, busy=True) == 1.0
