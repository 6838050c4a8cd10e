"""Micro-batches of a bounded size, however much there is to read.

A query that stood still for an hour has an hour of tuples to read. Without a bound, Spark reads all
of them in one batch, and keeps them all: it lets state go only when time has moved, which it does
between two batches. The engine would run out of memory, and again after each of its starts.

A batch must not end between the ticks of two partitions: it would see a tick of the one, and not
yet the tuples before it in the other. So only a topic with a single partition is cut into batches.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from catalog.plan import is_stateful, source_nodes
from catalog.runs import QueryRun, Run

GREW = "a topic has got partitions since the query started"


def in_microbatches(run: Run) -> bool:
    """Whether a run is in micro-batches.

    Spark's real-time mode keeps no state. A backfill ends between two of its short batches.
    """
    return isinstance(run, QueryRun) and (run.backfill or is_stateful(run.plan))


def share_of(run: QueryRun, most: int) -> int | None:
    """How many records a batch of the run reads of each source, if it may read `most` of all.

    None says that there is no bound: the run is not in micro-batches.
    """
    if not in_microbatches(run):
        return None
    return max(1, most // len(source_nodes(run.plan)))


def of_one_partition(records: DataFrame) -> DataFrame:
    """These records of a topic; the batch fails as soon as the topic has a second partition.

    The query then starts again, without a bound.
    """
    failed = fn.raise_error(fn.lit(GREW)).cast("boolean")
    return records.where(fn.when(fn.col("partition") == fn.lit(0), fn.lit(True)).otherwise(failed))
