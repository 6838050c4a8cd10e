"""The one Spark session of an engine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from catalog.errors import InvalidInput
from secfilter.order import UNCHECKED

# Offset and commit logs cost 45 ms each with Spark's defaults on a local disk, 5 ms with these.
_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Hadoop sets file modes itself and ignores the umask of the process.
    "spark.hadoop.fs.permissions.umask-mode": "077",
}

# No part of Spark may serve data or plans to anybody.
_CLOSED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.authenticate": "true",
    "spark.log.level": "WARN",
    "spark.sql.redaction.string.regex": "(?i)password|sasl|secret",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas",
}

# These define the meaning of queries and records, so no deployment may change them.
_MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # `Price` and `price` are two attributes.
    "spark.sql.caseSensitive": "true",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    **UNCHECKED,
}

_STREAMING = {
    # Allow real-time batches below 5 s, so that new classes and restarts wait less.
    "spark.sql.streaming.realTimeMode.minBatchDuration": "500ms",
    "spark.sql.shuffle.partitions": "1",
    # Inferring more filters from those of a plan took a third of planning, and removed nothing.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    # Without this, three of four calls to Spark's process send lines of code of expressions.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.stopTimeout": "30s",
    # Spark keeps the plans of a thousand ended batches for a page that nobody can open here. (Jobs
    # and stages are kept, because `secfilter.leftovers` reads from them whether a job's tasks
    # ended.)
    "spark.sql.ui.retainedExecutions": "10",
}

# JSON may be nested 1,000 levels deep, and the engine handles such a value recursively. With the
# usual stack of 1 MB, one record of a sender would end the whole process. Also, the generated code
# for the checks of one record may be larger than 8,000 bytes. Java normally never compiles such a
# method, and ingest of six attributes took four times as long.
_JAVA = "-Xss16m -XX:-DontCompileHugeMethods"
# A process without free memory may hang for ever. A process that has ended is started again.
_END = "-XX:+ExitOnOutOfMemoryError"
_COLLECTOR = "-XX:+UseParallelGC -XX:-UsePSAdaptiveSurvivorSizePolicy"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# Spark is one process on one machine. The objects for a record live for a short time. The parallel
# collector removes them in pauses of some milliseconds, and uses less processor time than G1. By
# default it leaves too little room for objects that survive one collection, such as those of a
# batch. They would move to the old generation, whose collection stops everything for 0.3 s every 40
# s.
_ONE_PROCESS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_RUNTIME = "org.apache.spark.sql.execution.streaming.runtime"
# Warnings about batches that are longer than their interval, about plans that are too long to show,
# and about settings that Kafka's clients do not know.
_NOISE = (
    f"{_RUNTIME}.ProcessingTimeExecutor",
    "org.apache.spark.util.SparkStringUtils",
    "org.apache.kafka.clients.producer.ProducerConfig",
    "org.apache.kafka.clients.consumer.ConsumerConfig",
    "org.apache.kafka.clients.admin.AdminClientConfig",
)

# local[n, m] is not allowed, because it tries a failed task again.
_LOCAL_MASTER = re.compile(r"local(\[(\d+|\*)\])?")

# Hadoop's own local file system would start a process for each file to set its mode.
_LOCAL_FILES_JAR = "hadoop-bare-naked-local-fs-*.jar"
_LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.NakedLocalFileSystem"
}


def session_options(
    master: str, jars: Path | None, options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All Spark settings of a session. `options` override the defaults.

    The driver is bound to loopback. `options` must not contain a secret, because they become
    arguments of a process. Raises InvalidInput for an option that would change the meaning of a
    query. Also raises it for a cluster: a task that is tried again would not know what ingest has
    written since, and the traffic between the machines would not be encrypted.
    """
    if not _LOCAL_MASTER.fullmatch(master):
        raise InvalidInput(f"the master {master!r} is not supported; use a local one: local[256]")
    if fixed := _MEANING.keys() & (options or {}).keys():
        raise InvalidInput(f"{', '.join(sorted(fixed))} cannot be set; leave it out of the options")
    given = options or {}
    return {
        **_CHECKPOINTS,
        **_CLOSED,
        **_MEANING,
        **_STREAMING,
        **_ONE_PROCESS,
        **(_with_jars(jars) if jars else {}),
        **given,
        # A deployment may choose another collector, but the other options of Java stay.
        _JAVA_OPTIONS: f"{_JAVA} {given.get(_JAVA_OPTIONS, _COLLECTOR)} {_END}",
    }


def _with_jars(jars: Path) -> dict[str, str]:
    files = _LOCAL_FILES if any(jars.glob(_LOCAL_FILES_JAR)) else {}
    return {"spark.driver.extraClassPath": f"{jars}/*", **files}


def with_reserve(master: str) -> str:
    """A master with twice as many tasks: each run may have a side run, which takes as many at most.

    The slots that are given out are those of `master` itself (`catalog.limits`). What is not a
    number of tasks stays as it is.
    """
    given = _LOCAL_MASTER.fullmatch(master)
    tasks = given[2] if given else None
    return f"local[{2 * int(tasks)}]" if tasks and tasks.isdecimal() else master


def build_session(
    master: str, jars: Path | None, options: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or return the session that runs already.

    `jars` is the folder of the Kafka connector's jars, `options` are Spark settings.
    """
    # Spark's Python workers need this program's packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("secfilter")
    for name, value in session_options(master, jars, options).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _forget_origins(spark)
    _quieten(spark)
    return spark


def _quieten(spark: SparkSession) -> None:
    """Remove warnings of Spark from the log that nobody can do anything about."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    for logger in _NOISE:
        log4j.core.config.Configurator.setLevel(logger, log4j.Level.ERROR)


def _forget_origins(spark: SparkSession) -> None:
    """Forget where each of Hadoop's 1,100 settings comes from, but keep the settings.

    A stateful batch sends them several times, and Hadoop compresses each origin separately.
    """
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    origins = settings.getClass().getDeclaredField("updatingResource")
    origins.setAccessible(True)
    origins.get(settings).clear()
