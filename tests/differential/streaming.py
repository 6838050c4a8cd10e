"""Running a case batch by batch, with state that goes on from one query to the next."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from catalog.analysis import analyse
from catalog.label_layout import LabelLayout
from catalog.plan import Emission
from catalog.relation import Relation
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from secfilter.lab import read_lab
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
) -> StreamingQuery:
    """Run the case's query over one more batch; the query, which has ended.

    Its state is in the folder. What Kafka's sink would be given comes to `found`.
    """
    given = folder / "given"
    stored(spark, [batch]).write.mode("append").parquet(str(given))

    def read(relation: Relation) -> DataFrame:
        arriving = spark.readStream.schema(spark.read.parquet(str(given)).schema)
        records = arriving.parquet(str(given))
        own = records.where(fn.col("topic") == f"0/{relation.topic}")
        return read_lab(own, relation, case.reach_of(relation), None, registered)

    compiled = compile_plan(
        *(analyse(case.plan), read, case.reach_of, case.users_of), layout=layout, narrow=narrow
    )
    out = fan_out(compiled, run_of(case), "key")
    updates = case.plan.emission is Emission.UPDATES
    query = (
        out.writeStream.foreachBatch(lambda frame, _: found.extend(frame.collect()))
        .outputMode("update" if updates else "append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query
