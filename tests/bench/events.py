"""The events of paper 003 (10,000 a second, 30 types, six attributes), and queries over them.

A query is measured as the platform runs it: as a stateful streaming query, batch by batch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from catalog.analysis import analyse
from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.time_source import TimeSource
from secadmin.languages import parse_sql
from secfilter.columns import ID, label_column
from secfilter.compiler import compile_plan

TYPES, RATE, PARTITIONS = 30, 10_000, 1_000
# The first batches compile.
BATCHES, WARM, BATCH = 12, 4, 100_000

SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP, required=True),
        Attribute("type", Type.STRING, required=True),
        Attribute("account", Type.BIGINT),
        Attribute("amount", Type.DOUBLE),
        Attribute("balance", Type.DOUBLE),
        Attribute("place", Type.STRING),
    )
)
STREAM = Relation(
    1, "events", RelationKind.STREAM, SCHEMA, "ts", lateness_ms=1_000, time=TimeSource.DATA
)
LABEL = Label.of(0, 1)


class OneStream:
    """A resolver for one relation."""

    def __init__(self, relation: Relation = STREAM) -> None:
        self._relation = relation

    def relation(self, _name: str) -> Relation:
        """The relation."""
        return self._relation


def event_attributes(number: Column) -> list[Column]:
    """An event by its number. There are `PARTITIONS` accounts."""
    mixed = fn.hash(number)
    return [
        fn.timestamp_micros(fn.lit(1_700_000_000_000_000) + number * (1_000_000 // RATE)).alias(
            "ts"
        ),
        fn.concat(fn.lit("t"), fn.pmod(mixed, fn.lit(TYPES)).cast("string")).alias("type"),
        fn.pmod(mixed, fn.lit(PARTITIONS)).cast("bigint").alias("account"),
        fn.pmod(fn.hash(mixed), fn.lit(1_000)).cast("double").alias("amount"),
        fn.pmod(fn.hash(mixed, number), fn.lit(1_000)).cast("double").alias("balance"),
        fn.concat(fn.lit("p"), fn.pmod(number, fn.lit(100)).cast("string")).alias("place"),
    ]


def event_rates(
    spark: SparkSession,
    text: str,
    tasks: int,
    batch: int = BATCH,
    batches: int = BATCHES,
    warm: int = WARM,
) -> list[float]:
    """Events a second of a query with state, of each batch that comes when Java is warm.

    An operator holds a whole batch until time has moved, which it does behind the batch. So it may
    hold two of them, and its limit says how large a `batch` can be.
    One task is the default. `[secfilter.options]` of the settings may give a query more. Raises
    RuntimeError if the query did not take all events.
    """
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    plan = parse_sql(text, OneStream()).plan
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "events"
        _write(spark, given, batch, batches)

        def source(_relation: Relation) -> DataFrame:
            known = spark.read.parquet(str(given)).schema
            reader = spark.readStream.schema(known).option("maxFilesPerTrigger", 1)
            return reader.parquet(str(given))

        frame = compile_plan(analyse(plan), source, lambda _relation: LABEL).frame
        writer: Any = frame.writeStream.format("noop").outputMode("append")
        writer = writer.option("checkpointLocation", str(Path(folder) / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = query.recentProgress
        lost = sum(_lost(each.observedMetrics) for each in progress)
        if lost:
            raise RuntimeError(f"{lost} tuples were beyond a limit, so nothing is measured")
        counted = [each for each in progress if each.numInputRows][warm:]
        return [each.numInputRows / each.durationMs["triggerExecution"] * 1e3 for each in counted]


def _lost(observed: Mapping[str, Row] | None) -> int:
    """How many tuples the operators of a batch did not take."""
    return sum(row["withheld"] for row in (observed or {}).values())


def _write(spark: SparkSession, folder: Path, size: int, batches: int) -> None:
    """A file for each batch of that size, in the order of their times."""
    for first in range(0, size * batches, size):
        numbers = spark.range(first, first + size, 1, 1)
        lineage = fn.lpad(fn.col("id").cast("string"), 12, "0").alias(ID)
        words = fn.lit(LABEL.word(0)).alias(label_column(0))
        events = numbers.select(*event_attributes(fn.col("id")), words, lineage)
        events.coalesce(1).write.mode("append").parquet(str(folder))
