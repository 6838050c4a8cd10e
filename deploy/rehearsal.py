"""What an engine's Spark does, without Kafka: `python -m deploy.rehearsal JARS ARCHIVE`.

At its end Java writes the archive of all classes that it has loaded (`secfilter.class_archive`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.record_format import RecordFormat
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from deploy.trial.run import Trial
from deploy.trial.world import TrialStream, World
from secadmin.languages.sql.parse import parse_sql
from secfilter.class_archive import writing
from secfilter.engine_process import engine_process
from secfilter.session import build_session

_QUERIES = (
    "SELECT n FROM s WHERE n > 1",
    "SELECT MAX(n) AS high FROM s GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)",
)
_RECORD = b'{"ts": "2026-01-31T12:00:00Z", "n": 2}'
# Nothing listens there. The query fails after a second, with all classes loaded.
_NOWHERE = {
    "kafka.bootstrap.servers": "localhost:1",
    "kafka.default.api.timeout.ms": "1000",
    "kafka.request.timeout.ms": "900",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="nobody" password="none";'
    ),
}
_WAIT_S = 5


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Plan and run queries as engines do."""
    schema = Schema((Attribute("ts", Type.TIMESTAMP), Attribute("n", Type.BIGINT)))
    relation = Relation(1, "s", RelationKind.STREAM, schema, "ts", lateness_ms=0)
    stream = TrialStream(relation, Label.of(0), RecordFormat(), (_RECORD,))
    world = World({"s": stream}, {"somebody": Clearance.of(0)})
    trial = Trial(spark, world)
    for text in _QUERIES:
        trial.results("q", parse_sql(text, world))
    read = {**_NOWHERE, "subscribe": "s", "startingOffsets": '{"s":{"0":0}}'}
    sent = spark.readStream.format("kafka").options(**read).load()
    _stream(sent, {"realTime": "1 second"}, folder / "1")
    _stream(sent, {"processingTime": "100 milliseconds"}, folder / "2")
    rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING)")
    _stream(rows, {"processingTime": "100 milliseconds"}, folder / "3")


def _stream(rows: DataFrame, trigger: Mapping[str, str], checkpoint: Path) -> None:
    sink = {**_NOWHERE, "topic": "s", "kafka.max.block.ms": "1000"}
    writer = rows.writeStream.format("kafka").options(**sink).outputMode("update")
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(**trigger).start()
    with suppress(StreamingQueryException):
        query.awaitTermination(_WAIT_S)
    query.stop()


def main(jars: Path, archive: Path) -> None:
    """Rehearse, and let Java write the archive."""
    with tempfile.TemporaryDirectory() as folder:
        spark = build_session("local[4]", jars, archive=writing(archive))
        process = engine_process(spark)
        rehearse(spark, Path(folder))
        spark.stop()
        if process.stdin is not None:
            # It ends with its input.
            process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
