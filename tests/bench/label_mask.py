"""What the check of a label costs in generated code (seed 004 §4.2: 60 ns a tuple)."""

from __future__ import annotations

import time
from statistics import median

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as fn

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.runs import FanOutClass
from secfilter.columns import label_column
from secfilter.session import build_session
from secfilter.visibility import visible_to
from tests.bench.figure import Figure
from tests.bench.world import World

TUPLES = 100_000_000
RUNS = 7


def label_mask(world: World) -> list[Figure]:
    """Nanoseconds a tuple on one core: a sum over what is visible less the sum over all."""
    spark = build_session("local[1]", None)
    try:
        visible = visible_to(FanOutClass("out.bench.x", Clearance.of(0)), (0,), Label(0))
        plain = fn.col(label_column(0))
        checked = fn.when(visible, plain)
        for column in (plain, checked):
            _seconds(spark, column)
        pairs = [(_seconds(spark, checked), _seconds(spark, plain)) for _ in range(RUNS)]
    finally:
        spark.stop()
    cost = median((with_check - without) / TUPLES * 1e9 for with_check, without in pairs)
    return [Figure(f"label check in generated code, median of {RUNS}", cost, "ns/tuple", 10.0)]


def _seconds(spark: SparkSession, column: Column) -> float:
    labels = spark.range(0, TUPLES, 1, 1).select((fn.col("id") % 4).alias(label_column(0)))
    started = time.monotonic()
    labels.agg(fn.sum(column)).collect()
    return time.monotonic() - started
