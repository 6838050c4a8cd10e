"""The two lanes of tests: a fair sample, and the long one, which proves by numbers.

`python3 -m deploy test` runs the sample, `python3 -m deploy test --long` all. A test that belongs
to the long lane alone has the mark `long`; one that takes a number asks `number_of`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

LANE, LONG = "TEST_LANE", "long"


def is_long() -> bool:
    """Whether this run is of the long lane."""
    return os.environ.get(LANE) == LONG


def number_of(name: str, *, sample: int, long: int) -> int:
    """How many: what the environment variable `name` says, or else the number of the lane."""
    return int(os.environ.get(name) or (long if is_long() else sample))


def sampled(values: Iterable[Any], step: int, *, first: int = 0) -> list[Any]:
    """Values for `parametrize`: each `step`th from `first` on; the long lane has all."""
    return [
        value if number % step == first else pytest.param(value, marks=pytest.mark.long)
        for number, value in enumerate(values)
    ]
