"""The two lanes of tests: a fair sample, and the long one, which proves by numbers.

`python3 -m deploy test` runs the sample, `python3 -m deploy test --long` all. A test that belongs
to the long lane alone has the mark `long`; one that takes a number asks `number_of`.
"""

from __future__ import annotations

import os

LANE, LONG = "TEST_LANE", "long"


def is_long() -> bool:
    """Whether this run is of the long lane."""
    return os.environ.get(LANE) == LONG


def number_of(name: str, *, sample: int, long: int) -> int:
    """How many: what the environment variable `name` says, or else the number of the lane."""
    return int(os.environ.get(name) or (long if is_long() else sample))
