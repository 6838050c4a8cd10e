"""Random plans over random tuples: the compiler and the fan-out agree with the oracle.

DIFFERENTIAL_CASES sets how many (50, and 2,000 in the long lane), DIFFERENTIAL_MIXED_CASES how many
more with windows and joins over each other (12, and 500), DIFFERENTIAL_MOVING_CASES how many more
with moving windows (25, and 500), DIFFERENTIAL_MATCHING_CASES how many more with event patterns
(15, and 500), DIFFERENTIAL_SEED the first one's seed (0). A failure names the seed, or
prints those of its job; `DIFFERENTIAL_CASES=1 DIFFERENTIAL_SEED=<seed>` runs that case alone.
"""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from tests.differential.comparing import check_all
from tests.differential.make_case import (
    SAMPLE,
    SAMPLE_MATCHING,
    SAMPLE_MIXED,
    SAMPLE_MOVING,
    make_case,
    make_matching_case,
    make_mixed_case,
    make_moving_case,
)
from tests.lanes import number_of

_CASES = number_of("DIFFERENTIAL_CASES", sample=SAMPLE, long=2_000)
_MIXED = number_of("DIFFERENTIAL_MIXED_CASES", sample=SAMPLE_MIXED, long=500)
_MOVING = number_of("DIFFERENTIAL_MOVING_CASES", sample=SAMPLE_MOVING, long=500)
_MATCHING = number_of("DIFFERENTIAL_MATCHING_CASES", sample=SAMPLE_MATCHING, long=500)
_FIRST = int(os.environ.get("DIFFERENTIAL_SEED", "0"))
_LAST = _FIRST + _CASES
_TOGETHER, _COMPILED = 25, 5


def _check(spark: SparkSession, seeds: range) -> None:
    # Where Spark itself fails, all of the job fails, and nothing else names the cases.
    print(f"seeds {seeds.start} to {seeds.stop - 1}")
    check_all(spark, [make_case(seed) for seed in seeds])


@pytest.mark.parametrize("start", range(_FIRST + _COMPILED, _LAST, _TOGETHER))
def test_generated(interpreted: SparkSession, start: int) -> None:
    _check(interpreted, range(start, min(start + _TOGETHER, _LAST)))


@pytest.mark.parametrize("start", range(_FIRST, _FIRST + _MIXED, _TOGETHER))
def test_generated_windows_and_joins(interpreted: SparkSession, start: int) -> None:
    seeds = range(start, min(start + _TOGETHER, _FIRST + _MIXED))
    print(f"seeds of windows and joins {seeds.start} to {seeds.stop - 1}")
    check_all(interpreted, [make_mixed_case(seed) for seed in seeds])


@pytest.mark.parametrize("start", range(_FIRST, _FIRST + _MOVING, _TOGETHER))
def test_generated_moving_windows(interpreted: SparkSession, start: int) -> None:
    seeds = range(start, min(start + _TOGETHER, _FIRST + _MOVING))
    print(f"seeds of moving windows {seeds.start} to {seeds.stop - 1}")
    check_all(interpreted, [make_moving_case(seed) for seed in seeds])


@pytest.mark.parametrize("start", range(_FIRST, _FIRST + _MATCHING, _TOGETHER))
def test_generated_patterns(interpreted: SparkSession, start: int) -> None:
    seeds = range(start, min(start + _TOGETHER, _FIRST + _MATCHING))
    print(f"seeds of event patterns {seeds.start} to {seeds.stop - 1}")
    check_all(interpreted, [make_matching_case(seed) for seed in seeds])


def test_generated_as_spark_usually_runs(compiled: SparkSession) -> None:
    """The first few, with generated code as in production."""
    _check(compiled, range(_FIRST, min(_FIRST + _COMPILED, _LAST)))
