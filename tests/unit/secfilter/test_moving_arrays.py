"""Arrays of a group's values as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.aggregates import collecting
from catalog.schema import Type
from secfilter.moving_arrays import array_form, time_text

# What Spark's own formatter of times gives.
_TIMES = [
    (0, "1970-01-01T00:00:00.000000Z"),
    (1_234_567, "1970-01-01T00:00:01.234567Z"),
    (-62_135_596_800_000_000, "0001-01-01T00:00:00.000000Z"),
    (-62_135_596_800_000_001, "0000-12-31T23:59:59.999999Z"),
    (-62_167_219_200_000_001, "-0001-12-31T23:59:59.999999Z"),
    (-93_724_128_000_000_000, "-1000-01-01T00:00:00.000000Z"),
    (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
    (253_402_300_800_000_000, "+10000-01-01T00:00:00.000000Z"),
    (-9_223_372_036_854_775_807, "-290308-12-21T19:59:05.224193Z"),
    (9_223_372_036_854_775_807, "+294247-01-10T04:00:54.775807Z"),
]


@pytest.mark.parametrize(("time_us", "text"), _TIMES)
def test_a_time_outside_the_years_of_python_is_written_as_spark_writes_it(
    time_us: int, text: str
) -> None:
    assert time_text(time_us) == text
    for function in ("collect_list", "collect_set", "topk_1"):
        array = collecting(function)
        assert array is not None
        assert array_form(array, [time_us], Type.TIMESTAMP) == f'["{text}"]'


@given(st.datetimes())
def test_the_other_times_are_written_as_python_writes_them(at: datetime) -> None:
    time_us = (at.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
    assert time_text(time_us) == f"{at.isoformat(timespec='microseconds')}Z"
