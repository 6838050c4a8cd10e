"""The one Spark session of a data plane."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

# Offset and commit logs cost 45 ms each with Spark's defaults on a local disk, 5 ms with these.
_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Hadoop sets modes itself, whatever the process says.
    "spark.hadoop.fs.permissions.umask-mode": "077",
}

# Nothing of Spark's own serves data or plans to anyone.
_CLOSED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.authenticate": "true",
    "spark.log.level": "WARN",
    "spark.sql.redaction.string.regex": "(?i)password|sasl|secret",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas",
}

_MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # `Price` and `price` are two attributes.
    "spark.sql.caseSensitive": "true",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
}

_STREAMING = {
    # Real-time batches below 5 s: a new class is fed, and a restart done, that much sooner.
    "spark.sql.streaming.realTimeMode.minBatchDuration": "500ms",
    "spark.sql.shuffle.partitions": "1",
    # Inferring what follows from a plan's filters took a third of planning, and filters no more.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    # Telling Spark the line of code of each expression takes three calls of four to its process.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.stopTimeout": "30s",
}

# JSON may be nested 1,000 deep, and the engine describes such a value recursively: with the usual
# 1 MB one record of a sender would end the whole process. And what is generated for the checks of
# one record may be larger than the 8,000 bytes beyond which Java never compiles a method: ingest of
# six attributes took four times as long.
_JAVA = "-Xss16m -XX:-DontCompileHugeMethods"
_JAVA_OPTIONS = {
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
}

_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def session_options(
    master: str, jars: Path | None, options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All Spark settings of a session; `options` go over the defaults.

    Settings of a local master bind the driver to loopback. A secret must not be among `options`:
    they become arguments of a process.
    """
    local = master.startswith("local")
    return {
        **_CHECKPOINTS,
        **_CLOSED,
        **_MEANING,
        **_STREAMING,
        **_JAVA_OPTIONS,
        **(_LOOPBACK if local else {}),
        **({"spark.driver.extraClassPath": f"{jars}/*"} if jars and local else {}),
        **({"spark.jars": ",".join(_jars(jars))} if jars and not local else {}),
        **(options or {}),
    }


def build_session(
    master: str, jars: Path | None, options: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or give the session that runs.

    `jars` is the folder of the Kafka connector's jars, `options` are Spark settings.
    """
    builder = SparkSession.builder.master(master).appName("secfilter")
    for name, value in session_options(master, jars, options).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _jars(folder: Path) -> list[str]:
    return sorted(str(jar.resolve()) for jar in folder.glob("*.jar"))
