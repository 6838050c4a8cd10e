"""A query that ended behind the batch that moved the time gives what is due when it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from secfilter.checkpoint import Checkpoint, Checkpoints

NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


def run(spark: SparkSession, checkpoint: Checkpoint, folder: Path, *, follows: bool) -> list[int]:
    """Work through the folder, and say which windows (s) had a result.

    Without `follows`, the query ends behind the last batch that has tuples.
    """
    found: list[int] = []

    def keep(results: DataFrame, _: int) -> None:
        found.extend(row["start"] for row in results.collect())

    tuples = spark.readStream.schema("at timestamp").json(str(folder))
    counts = tuples.withWatermark("at", "0 seconds").groupBy(fn.window("at", "10 seconds")).count()
    starts = counts.select(fn.unix_seconds("window.start").alias("start"))
    spark.conf.set(NO_DATA_BATCHES, str(follows).lower())
    query = (
        starts.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint.spark))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
        spark.conf.set(NO_DATA_BATCHES, "true")
    return found


def write(folder: Path, name: str, *seconds: int) -> None:
    folder.mkdir(exist_ok=True)
    lines = (f'{{"at": "2026-01-31T12:00:{second:02}Z"}}\n' for second in seconds)
    (folder / name).write_text("".join(lines))


@pytest.mark.parametrize("planned", [True, False])
def test_what_is_due_comes_without_another_tuple(
    spark: SparkSession, tmp_path: Path, planned: bool
) -> None:
    """Without the plan Spark waits for the next tuple. If it does not any more, drop the plan."""
    folder = tmp_path / "in"
    write(folder, "1", 1, 2, 25)
    checkpoint = Checkpoints(tmp_path / "checkpoints").renew("query-1", "shape", None)
    assert run(spark, checkpoint, folder, follows=False) == []
    assert checkpoint.last_commit() == 0
    if planned:
        checkpoint.plan_due_batch()
    first = 1_769_860_800
    assert run(spark, checkpoint, folder, follows=True) == ([first] if planned else [])
    write(folder, "2", 45)
    later = [first + 20] if planned else [first, first + 20]
    assert run(spark, checkpoint, folder, follows=True) == later


def test_nothing_is_planned_twice_or_where_nothing_is_due(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    write(folder, "1", 1, 2, 25)
    checkpoint = Checkpoints(tmp_path / "checkpoints").renew("query-1", "shape", None)
    checkpoint.plan_due_batch()
    assert not (checkpoint.spark / "offsets").exists()
    run(spark, checkpoint, folder, follows=True)
    before = sorted(each.name for each in (checkpoint.spark / "offsets").iterdir())
    checkpoint.plan_due_batch()
    assert sorted(each.name for each in (checkpoint.spark / "offsets").iterdir()) == before
    assert run(spark, checkpoint, folder, follows=True) == []
