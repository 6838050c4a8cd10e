"""Spark's Kafka source: prints what the subscription in a folder gives.

Usage: PROGRAM FOLDER CHECKPOINT JARS (a folder with Spark's Kafka connector).
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

FOLDER, CHECKPOINT, JARS = map(Path, sys.argv[1:4])


def java_settings() -> dict[str, str]:
    """The settings of client.properties, each as an option of the source."""
    pairs = (line.split("=", 1) for line in (FOLDER / "client.properties").read_text().splitlines())
    unescaped = {k: v.replace("\\\\", "\0").replace("\\n", "\n") for k, v in pairs}
    return {f"kafka.{name}": value.replace("\0", "\\") for name, value in unescaped.items()}


def show(batch: DataFrame, _: int) -> None:
    """Print the records of a batch; fences are none."""
    for row in batch.select("topic", "value", "headers").collect():
        if not any(header.key == "fence" for header in row.headers or []):
            print("record", row.topic, row.value.decode(), sep="\t", flush=True)


def main() -> None:
    """Read until the process is ended."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(str(jar) for jar in JARS.glob("*.jar")))
        .config("spark.ui.enabled", False)
        .getOrCreate()
    )
    described = json.loads((FOLDER / "subscription.json").read_text())
    options = java_settings()
    # Spark keeps its own offsets and positions.
    for name in ("group.id", "group.protocol", "auto.offset.reset", "allow.auto.create.topics"):
        options.pop(f"kafka.{name}", None)
    source = (
        spark.readStream.format("kafka")
        .options(**options)
        .option("subscribePattern", described["topic_pattern"])
        .option("groupIdPrefix", described["group_prefix"] + "spark")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", True)
        .option("failOnDataLoss", False)
    )
    for attempt in itertools.count():
        # A batch that reads a denied topic fails each time. So a new checkpoint: what the topics
        # still hold comes again, with the same ids.
        stream = source.load().writeStream.foreachBatch(show)
        query = stream.option("checkpointLocation", str(CHECKPOINT / str(attempt))).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            print("error", str(error).splitlines()[0][:400], sep="\t", flush=True)


main()
