"""Plain Spark jobs in a driver of their own, as somebody without the platform writes them.

    python -m tests.bench.plain_driver SETTINGS FOLDER TOPIC

reads lines `<number of jobs> <trigger>` and answers each with `ready` once so many jobs read the
topic from its present end, in place of those of the line before. Trigger is `default`
(micro-batches one after the other) or `realtime`.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from catalog.settings import Settings
from secfilter.kafka_options import kafka_options
from secfilter.session import session_options
from tests.bench.backlog import SPARK_SCHEMA, plain_topic, threshold


def main() -> None:
    """Run jobs as the lines of standard input say, until it ends."""
    settings, folder, topic = Settings.load(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
    # An engine's account may read and write the platform's topics alone.
    kafka = settings.kafka
    connection = dict(kafka_options(kafka, kafka.secadmin, folder / "kafka").connection)
    java = "spark.driver.extraJavaOptions"
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.extraClassPath", f"{settings.secfilter.jars}/*")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        # The same collector as the platform's.
        .config(java, session_options("local[*]", None)[java])
        # It is suspended now and then, and must not take that for a failure.
        .config("spark.network.timeout", "3600s")
        .config("spark.log.level", "WARN")
        .getOrCreate()
    )
    running: list[Any] = []
    for line in sys.stdin:
        count, trigger = line.split()
        for query in running:
            query.stop()
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        running = [
            _start(spark, connection, topic, number, trigger, folder / "checkpoints" / str(number))
            for number in range(int(count))
        ]
        for query in running:
            _await_begun(query)
        print("ready", flush=True)
    spark.stop()


def _start(
    spark: SparkSession,
    connection: dict[str, str],
    topic: str,
    number: int,
    trigger: str,
    checkpoint: Path,
) -> Any:
    source = {**connection, "subscribe": topic, "startingOffsets": "latest"}
    records = spark.readStream.format("kafka").options(**source).load()
    # Untyped: the stubs do not know the real-time trigger.
    writer: Any = _job(records, number).writeStream.format("kafka").options(**connection)
    writer = writer.option("topic", plain_topic(number))
    writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger == "realtime":
        writer = writer.outputMode("update").trigger(realTime="5 seconds")
    return writer.start()


def _job(records: DataFrame, number: int) -> DataFrame:
    parsed = fn.from_json(fn.col("value").cast("string"), SPARK_SCHEMA)
    read = records.select(parsed.alias("t")).select("t.*")
    kept = read.where(fn.col("quantity") > fn.lit(threshold(number)))
    amount = (fn.col("price") * fn.col("quantity")).alias("amount")
    result = fn.struct("ts", "symbol", "venue", amount)
    return kept.select(fn.to_json(result).alias("value"))


def _await_begun(query: Any) -> None:
    """Wait until it says how it goes: then it knows where it begins."""
    while query.lastProgress is None:
        if (failure := query.exception()) is not None:
            raise failure
        time.sleep(0.05)


if __name__ == "__main__":
    main()
