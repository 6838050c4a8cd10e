"""The one Spark session of an engine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from catalog.errors import InvalidInput
from secfilter.class_archive import reading
from secfilter.cluster import SHARED_KEY, Cluster, cluster_options, is_cluster
from secfilter.order import UNCHECKED
from secfilter.shipped_code import shipped_code

_NAME = "secfilter"
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
    # Spark keeps a hundred generated classes for all queries, and each query needs several. With
    # more queries, each batch would generate and compile them again.
    "spark.sql.codegen.cache.maxEntries": "1000",
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
# Of the driver, and of the processes that run the tasks on a cluster.
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")

# The objects for a record live for a short time. The parallel collector removes them in pauses of
# some milliseconds, and uses less processor time than G1. By default it leaves too little room for
# objects that survive one collection, such as those of a batch. They would move to the old
# generation, whose collection stops everything for 0.3 s every 40 s.
_COLLECTOR = "-XX:+UseParallelGC -XX:-UsePSAdaptiveSurvivorSizePolicy"

# Without a cluster, Spark is one process on one machine.
_ONE_PROCESS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

# The classes in Spark's process whose functions build DataFrames.
_USED = ("org.apache.spark.sql.functions", "PythonUtils")

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
    master: str,
    jars: Path | None,
    options: Mapping[str, str] | None = None,
    cluster: Cluster | None = None,
    archive: str = "",
) -> dict[str, str]:
    """All Spark settings of a session. `options` override the defaults.

    `archive` is what Java does about an archive of classes, if it should not read that of the jars.
    Without a cluster, the driver is bound to loopback. `options` must not contain a secret, because
    they become arguments of a process. Raises InvalidInput for an option that would change the
    meaning of a query, or take away the protection of data on a cluster. Also raises it for a
    master that is neither a local one nor that of `cluster`.
    """
    supported = is_cluster(master) if cluster else _LOCAL_MASTER.fullmatch(master)
    if not supported:
        raise InvalidInput(
            f"the master {master!r} is not supported; use a local one: local[256], or that of a "
            "Spark cluster: spark://HOST:PORT (docs/cluster.md)"
        )
    if fixed := _MEANING.keys() & (options or {}).keys():
        raise InvalidInput(f"{', '.join(sorted(fixed))} cannot be set; leave it out of the options")
    given = options or {}
    made = {
        **_CHECKPOINTS,
        **_CLOSED,
        **_MEANING,
        **_STREAMING,
        **(_with_jars(jars) if jars else {}),
        **(cluster_options(cluster, given) if cluster else {**_ONE_PROCESS, **given}),
    }
    # A deployment may choose another collector, but the other options of Java stay.
    shared = archive or reading(jars)
    for name in _JAVA_OPTIONS if cluster else _JAVA_OPTIONS[:1]:
        # Executors may have another Java.
        classes = [shared] if shared and name == _JAVA_OPTIONS[0] else []
        made[name] = " ".join([_JAVA, given.get(name, _COLLECTOR), *classes, _END])
    return made


def _with_jars(jars: Path) -> dict[str, str]:
    files = _LOCAL_FILES if any(jars.glob(_LOCAL_FILES_JAR)) else {}
    return {**dict.fromkeys(_CLASS_PATHS, f"{jars}/*"), **files}


def with_reserve(master: str) -> str:
    """A master with twice as many tasks: each run may have a side run, which takes as many at most.

    The slots that are given out are those of `master` itself (`catalog.limits`). What is not a
    number of tasks stays as it is.
    """
    given = _LOCAL_MASTER.fullmatch(master)
    tasks = given[2] if given else None
    return f"local[{2 * int(tasks)}]" if tasks and tasks.isdecimal() else master


def build_session(
    master: str,
    jars: Path | None,
    options: Mapping[str, str] | None = None,
    cluster: Cluster | None = None,
    archive: str = "",
) -> SparkSession:
    """Start Spark, or return the session that runs already.

    `jars` is the folder of the Kafka connector's jars, `options` are Spark settings. `cluster` is
    what a Spark cluster needs. `archive` and what is raised are as in `session_options`.
    """
    # Spark's Python workers need this program's packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable if cluster is None else cluster.python
    made = session_options(master, jars, options, cluster, archive)
    if cluster is not None and cluster.secret is not None:
        _begin_with_secret({"spark.master": master, **made}, cluster.secret)
    builder = SparkSession.builder.master(master).appName(_NAME)
    for name, value in made.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if cluster is not None:
        spark.sparkContext.addPyFile(str(shipped_code(cluster.code)))
    _forget_origins(spark)
    _look_up_once(spark)
    _quieten(spark)
    return spark


def _begin_with_secret(options: Mapping[str, str], secret: str) -> None:
    """Start Spark with the secret of its cluster, which is told to the process that runs already.

    Options become arguments of that process, which every user of the machine can read.
    """
    named = {"spark.app.name": _NAME, **options}
    given = SparkConf(loadDefaults=False).setAll(list(named.items()))
    gateway: Any = launch_gateway(given)  # type: ignore[no-untyped-call]
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(named.items()))
    SparkContext(conf=conf.set(SHARED_KEY, secret), gateway=gateway)


def _quieten(spark: SparkSession) -> None:
    """Remove warnings of Spark from the log that nobody can do anything about."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    for logger in _NOISE:
        log4j.core.config.Configurator.setLevel(logger, log4j.Level.ERROR)


class _LookedUp:
    """The functions of a class in Spark's process. Each is looked up there at its first use."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        # Python asks here only for what is not kept yet.
        function = getattr(self._found, name)
        setattr(self, name, function)
        return function


def _look_up_once(spark: SparkSession) -> None:
    """Keep the functions of which Python builds DataFrames, once they have been found.

    To build a DataFrame takes hundreds of calls to Spark's process. Without this, half of them ask
    where a function is.
    """
    jvm: Any = spark._jvm
    for name in _USED:
        found = getattr(jvm, name)
        if not isinstance(found, _LookedUp):
            setattr(jvm, name, _LookedUp(found))


def _forget_origins(spark: SparkSession) -> None:
    """Forget where each of Hadoop's 1,100 settings comes from, but keep the settings.

    A stateful batch sends them several times, and Hadoop compresses each origin separately.
    """
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    origins = settings.getClass().getDeclaredField("updatingResource")
    origins.setAccessible(True)
    origins.get(settings).clear()
