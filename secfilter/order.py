"""The results of a micro-batch in the order of their time.

A query over them takes the newest for how far time has come. One that had read a part of them would
find what is older and comes later too late, so the older ones come first: by how far a result lags
behind those before it, it lags by its sources' lateness at most (`catalog.output_relation`).

Spark refuses every sort of a stream, for there is no order of all of it; the order in each batch is
all that is wanted here. So its check of what streams cannot do is made here, before the sort.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from secfilter.columns import attribute

# Spark's own check, which is always made here (`check_supported`).
UNCHECKED = {"spark.sql.streaming.unsupportedOperationCheck": "false"}


def check_supported(results: DataFrame, mode: str) -> None:
    """Raises Spark's AnalysisException for what streams cannot do; `mode` is the output mode."""
    package: Any = SparkSession.active()._jvm
    sql: Any = package.org.apache.spark.sql
    modes = sql.streaming.OutputMode
    wanted = {"append": modes.Append, "update": modes.Update}[mode]()
    plan: Any = results._jdf.queryExecution().analyzed()
    sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, wanted)


def in_order(results: DataFrame, event_time: str | None) -> DataFrame:
    """Each batch's results in the order of their time, if they have one."""
    if event_time is None:
        return results
    # One task writes them: those of two would overtake each other.
    return results.coalesce(1).sortWithinPartitions(attribute(event_time))
