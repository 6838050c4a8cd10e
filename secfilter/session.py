"""The one Spark session of a data plane."""

from __future__ import annotations

import re
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

# What a query and a record mean; no setting of a deployment's may change it.
_MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # `Price` and `price` are two attributes.
    "spark.sql.caseSensitive": "true",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    **UNCHECKED,
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
    # The plans of batches that ended, for a page that nobody can open: a thousand by default. (Jobs
    # and stages are kept: they tell `secfilter.leftovers` whether the tasks of a job have ended.)
    "spark.sql.ui.retainedExecutions": "10",
}

# JSON may be nested 1,000 deep, and the engine describes such a value recursively: with the usual
# 1 MB one record of a sender would end the whole process. And what is generated for the checks of
# one record may be larger than the 8,000 bytes beyond which Java never compiles a method: ingest of
# six attributes took four times as long.
_JAVA = "-Xss16m -XX:-DontCompileHugeMethods"
# What has run out of memory may stand still for ever; what has ended is started anew.
_END = "-XX:+ExitOnOutOfMemoryError"
_COLLECTOR = "-XX:+UseParallelGC -XX:-UsePSAdaptiveSurvivorSizePolicy"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# One process on one machine. What a record needs dies young: the parallel collector stops for some
# milliseconds to drop it, and takes less of the cores than G1, which works beside the records. Left
# to itself it makes so little room for what outlives one collection (a batch does) that this goes
# to the old ones, and all of them are collected every 40 seconds, which stops everything for 0.3.
_ONE_PROCESS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_RUNTIME = "org.apache.spark.sql.execution.streaming.runtime"
# A batch that lasts longer than the next one's start; what plans are too long to show; settings of
# Kafka's clients that they do not know.
_NOISE = (
    f"{_RUNTIME}.ProcessingTimeExecutor",
    "org.apache.spark.util.SparkStringUtils",
    "org.apache.kafka.clients.producer.ProducerConfig",
    "org.apache.kafka.clients.consumer.ConsumerConfig",
    "org.apache.kafka.clients.admin.AdminClientConfig",
)

# Not local[n, m]: there a task that failed is tried again.
_LOCAL_MASTER = re.compile(r"local(\[(\d+|\*)\])?")

# Hadoop's own local file system starts a process for each file, to set its mode.
_LOCAL_FILES_JAR = "hadoop-bare-naked-local-fs-*.jar"
_LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.NakedLocalFileSystem"
}


def session_options(
    master: str, jars: Path | None, options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All Spark settings of a session; `options` go over the defaults.

    The driver is bound to loopback. A secret must not be among `options`: they become arguments of
    a process. Raises InvalidInput for an option that would change what a query means, and for a
    cluster: a task that is tried again elsewhere would not know what ingest has written since, and
    nothing encrypts what its machines tell each other.
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
        # A deployment may choose another collector; all else that the process needs stays.
        _JAVA_OPTIONS: f"{_JAVA} {given.get(_JAVA_OPTIONS, _COLLECTOR)} {_END}",
    }


def _with_jars(jars: Path) -> dict[str, str]:
    files = _LOCAL_FILES if any(jars.glob(_LOCAL_FILES_JAR)) else {}
    return {"spark.driver.extraClassPath": f"{jars}/*", **files}


def with_reserve(master: str) -> str:
    """A master with twice as many tasks: each query may have a side run, which takes as many.

    The slots that are given out are those of `master` itself (`catalog.limits`). What is not a
    number of tasks stays as it is.
    """
    given = _LOCAL_MASTER.fullmatch(master)
    tasks = given[2] if given else None
    return f"local[{2 * int(tasks)}]" if tasks and tasks.isdecimal() else master


def build_session(
    master: str, jars: Path | None, options: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or give the session that runs.

    `jars` is the folder of the Kafka connector's jars, `options` are Spark settings.
    """
    builder = SparkSession.builder.master(master).appName("secfilter")
    for name, value in session_options(master, jars, options).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _forget_origins(spark)
    _quieten(spark)
    return spark


def _quieten(spark: SparkSession) -> None:
    """Leave out of the log what Spark warns of and nobody can do anything about."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    for logger in _NOISE:
        log4j.core.config.Configurator.setLevel(logger, log4j.Level.ERROR)


def _forget_origins(spark: SparkSession) -> None:
    """Forget where each of Hadoop's 1,100 settings comes from, not the settings.

    A stateful batch sends them out several times, and Hadoop zips each origin by itself.
    """
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    origins = settings.getClass().getDeclaredField("updatingResource")
    origins.setAccessible(True)
    origins.get(settings).clear()
