"""What a streaming query gives until its input is used up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import TimestampType

# The number of the batch that gave a row.
BATCH = "__batch"


def collected(frame: DataFrame, mode: str, checkpoint: Path) -> tuple[list[Row], StreamingQuery]:
    """The rows, with times as seconds since 1970, and the query, which has ended."""
    found: list[Row] = []
    times = [f.name for f in frame.schema.fields if f.dataType == TimestampType()]
    frame = frame.withColumns({name: fn.unix_seconds(name) for name in times})
    writer: Any = frame.writeStream.outputMode(mode)
    writer = writer.foreachBatch(
        lambda batch, number: found.extend(batch.withColumn(BATCH, fn.lit(number)).collect())
    )
    writer = writer.option("checkpointLocation", str(checkpoint))
    query: StreamingQuery = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return found, query
