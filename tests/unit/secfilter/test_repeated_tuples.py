"""On a cluster a tuple may be in lab twice, with one origin. What keeps state counts it once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.plan import Aggregate, Change, Moving, MovingWindow, Node, Source, ToStream
from catalog.relation import RelationKind
from catalog.time_source import TimeSource
from tests.plans import AnyPlan, updating
from tests.unit.secfilter.test_lateness import counted, late, relation
from tests.unit.secfilter.test_ticks import COUNT
from tests.unit.secfilter.ticked import Entry, results_of

A = replace(relation("a", RelationKind.STREAM), time=TimeSource.BROKER)
BY_DATA = replace(A, time=TimeSource.DATA)
_MOVING: Node = ToStream(
    Aggregate(Moving(Source(A), MovingWindow(range_ms=4_000)), (), COUNT), Change.ISTREAM
)
# The first tuple comes again in its batch, in another batch, and when its window has closed.
AGAIN: list[list[Entry]] = [[(5, 1), (5, 1)], [(5, 1), (6, 2)], [12], [13], [(5, 1)], [20]]


@pytest.mark.parametrize("repeats", [True, False])
def test_a_window_counts_each_tuple_once(
    spark: SparkSession, tmp_path: Path, repeats: bool
) -> None:
    found, query = results_of(spark, tmp_path, counted(A), {"a": AGAIN}, repeats=repeats)
    assert [row["n"] for row in found] == [2 if repeats else 4]
    assert late(query) == 1


@pytest.mark.parametrize(
    ("plan", "mode", "counts"),
    [
        pytest.param(counted(BY_DATA), "append", [2], marks=pytest.mark.long),
        pytest.param(updating(counted(A)), "update", [1, 2], marks=pytest.mark.long),
        # The first tuple leaves the window at last.
        (_MOVING, "append", [1, 2, 1]),
    ],
    ids=["by data", "updates", "moving window"],
)
def test_all_that_keeps_state_counts_each_tuple_once(
    spark: SparkSession, tmp_path: Path, plan: AnyPlan, mode: str, counts: list[int]
) -> None:
    batches: list[list[Entry]] = [[(5, 1), (5, 1)], [(5, 1), (6, 2)]]
    # What moves time: a tuple, or a tick.
    end: Entry = (20, 9) if plan == counted(BY_DATA) else 10
    found, _ = results_of(spark, tmp_path, plan, {"a": [*batches, [end]]}, mode, repeats=True)
    assert [row["n"] for row in found] == counts
