"""Sorts the results of each micro-batch by their event time.

A query that reads these results uses the newest one to move its time forward. If newer results came
first, older ones could come too late. So the older ones are written first. Then a result lags
behind earlier results by at most the lateness of its sources (`catalog.output_relation`).

Spark refuses to sort a stream, because a whole stream has no order. Only the order in each batch is
needed here. So Spark's check for operations that streams do not support is made before the sort.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from secfilter.columns import ID, attribute

# This setting turns off Spark's own check, because it is always made here (`check_supported`).
UNCHECKED = {"spark.sql.streaming.unsupportedOperationCheck": "false"}
# Spark's check is older than the time that Spark keeps for each operator with state. It refuses an
# operator in Python over windows, which has the time of their results, as a window over windows has
# (tests/differential/test_mixed_streams.py). What is above such an operator, `catalog.moving_check`
# says: conditions and computed columns.
_OVER_WINDOWS = "applyInPandasWithState in append mode is not supported after aggregation"


def check_supported(results: DataFrame, mode: str) -> None:
    """Raise Spark's AnalysisException if a stream cannot do this. `mode` is the output mode."""
    package: Any = SparkSession.active()._jvm
    sql: Any = package.org.apache.spark.sql
    modes = sql.streaming.OutputMode
    wanted = {"append": modes.Append, "update": modes.Update}[mode]()
    plan: Any = results._jdf.queryExecution().analyzed()
    try:
        sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, wanted)
    except AnalysisException as error:
        if _OVER_WINDOWS not in str(error):
            raise


def in_order(results: DataFrame, event_time: str | None, *, by_class: bool = False) -> DataFrame:
    """Sort the results of each batch by their event time, if they have one.

    If each result is of one class (`by_class`), results of one time, or without a time, are sorted
    by their lineages. Otherwise their order would be that of the state, where results of other
    classes are too.
    """
    keys = [] if event_time is None else [attribute(event_time)]
    keys += [fn.col(ID)] if by_class else []
    if not keys:
        return results
    # One task writes all of them. The results of two tasks would overtake each other. If the state
    # has several parts, each has its task, which must not be the one that writes.
    parts = int(results.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    one = results.coalesce(1) if parts == 1 else results.repartition(1)
    return one.sortWithinPartitions(*keys)
