"""Which results are repeats, against lists of what was shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from secadmin.cli.kafka.repeats import Repeats

RESULTS = st.lists(st.tuples(st.sampled_from("abcd"), st.binary(max_size=2), st.binary(max_size=2)))


@given(RESULTS)
def test_a_repeat_is_what_was_last_shown_under_its_id(
    results: list[tuple[str, bytes, bytes]],
) -> None:
    repeats, last = Repeats(), dict[str, tuple[bytes, bytes]]()
    for id_, value, label in results:
        assert repeats.is_repeat(id_, value, label) == (last.get(id_) == (value, label))
        last[id_] = (value, label)


def test_the_ids_that_came_last_are_remembered() -> None:
    repeats = Repeats(most=2)
    assert [repeats.is_repeat(id_, b"") for id_ in "abab"] == [False, False, True, True]
    assert [repeats.is_repeat(id_, b"") for id_ in "cab"] == [False, False, False]
    assert [repeats.is_repeat(id_, b"") for id_ in "ba"] == [True, True]
