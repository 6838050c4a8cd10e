"""Running a case batch by batch, with state that goes on from one query to the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from catalog.analysis import analyse
from catalog.label_layout import LabelLayout
from catalog.plan import Emission, is_stateful
from catalog.reach import counted_streams
from catalog.relation import Relation
from catalog.runs import QueryRun
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from secfilter.lab import read_lab
from secfilter.merged_views import merged
from secfilter.order import check_supported, in_order
from secfilter.standing import receivers_of
from tests.differential.case import Case
from tests.differential.delivered import run_of
from tests.differential.engine import stored


def run_batch(
    spark: SparkSession,
    case: Case,
    batch: Case,
    folder: Path,
    found: list[Row],
    *,
    narrow: bool = False,
    layout: LabelLayout | None = None,
    registered: int | None = None,
    tick_ms: int | None = None,
    run: QueryRun | None = None,
) -> StreamingQuery:
    """Run the case's query over one more batch; the query, which has ended.

    Its state is in the folder. What Kafka's sink would be given comes to `found`. `run` is the
    case's run, perhaps with other classes. With `tick_ms`, a tick of that time ends the batch, and
    one in a further batch lets Spark act on it.
    """
    given = folder / "given"
    run = run_of(case) if run is None else run
    checked, counted = analyse(case.plan), counted_streams(case.plan)
    stored(spark, [batch], tick_ms).write.mode("append").parquet(str(given))
    if tick_ms is not None:
        alone = replace(batch, records=dict.fromkeys(batch.records, ()))
        stored(spark, [alone], tick_ms).write.mode("append").parquet(str(given))

    def read(relation: Relation) -> DataFrame:
        arriving = spark.readStream.schema(spark.read.parquet(str(given)).schema)
        records = arriving.option("maxFilesPerTrigger", 1).parquet(str(given))
        own = records.where(fn.col("topic") == f"0/{relation.topic}")
        ticks = checked.keeps_state and relation.by_ticks
        reached, senders = case.reach_of(relation), relation.object_id in counted
        return read_lab(own, relation, reached, None, registered, ticks=ticks, senders=senders)

    compiled = compile_plan(
        *(checked, read, case.reach_of, case.users_of),
        layout=layout,
        narrow=narrow,
        viewers=run.viewers,
        by_role=run.by_role,
        receivers=receivers_of(run),
    )
    updates = case.plan.emission is Emission.UPDATES
    check_supported(compiled.frame, "update" if updates else "append")
    if run.by_role:
        compiled = replace(compiled, frame=merged(compiled.frame, compiled.layout))
    if is_stateful(case.plan):
        ordered = in_order(compiled.frame, checked.event_time, by_class=run.viewers is not None)
        compiled = replace(compiled, frame=ordered)
    out = fan_out(compiled, run, "key")
    query = (
        out.writeStream.foreachBatch(lambda frame, _: found.extend(frame.collect()))
        .outputMode("update" if updates else "append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query
