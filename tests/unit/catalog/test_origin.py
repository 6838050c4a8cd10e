"""The origin of a tuple, as its record's key says it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.origin import Origin, origin_of

NUMBERS = st.integers(0, 2**31 - 1)


@given(NUMBERS, NUMBERS, st.integers(0, 2**63 - 1))
def test_an_origin_is_read_as_it_was_written(sender: int, partition: int, offset: int) -> None:
    origin = Origin(sender, partition, offset)
    assert origin_of(str(origin)) == origin_of(str(origin).encode()) == origin


@given(st.lists(st.builds(Origin, NUMBERS, NUMBERS, NUMBERS), unique=True))
def test_two_origins_are_never_written_alike(origins: list[Origin]) -> None:
    assert len({str(origin) for origin in origins}) == len(origins)


@pytest.mark.parametrize(
    "key", [None, b"", b"0:5", b"1:0:5:6", b"1:0:x", b"-1:0:5", b" 1:0:5", b"1:0:5\n", b"\xff:0:5"]
)
def test_what_is_no_origin_is_none(key: bytes | None) -> None:
    assert origin_of(key) is None
