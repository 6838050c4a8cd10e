"""Watches the process of Spark's JVM. If it ends, the engine ends, so that both start again."""

from __future__ import annotations

import logging
import os
from subprocess import Popen
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession

EXIT_CODE = 70
_log = logging.getLogger(__name__)


def engine_process(spark: SparkSession) -> Popen[bytes]:
    """The process in which this session's JVM runs."""
    gateway: Any = spark.sparkContext._gateway
    process: Popen[bytes] = gateway.proc
    return process


def end_with(process: Popen[bytes], *stopping: Event) -> None:
    """End this process at once when `process` ends, unless one of `stopping` is set.

    Without Spark's process there is nothing to clean up, and a thread that calls it may wait for an
    answer for ever.
    """

    def watch() -> None:
        process.wait()
        if not any(event.is_set() for event in stopping):
            _log.error("Spark's process has ended, and the engine ends with it")
            logging.shutdown()
            os._exit(EXIT_CODE)

    Thread(target=watch, name="engine", daemon=True).start()
