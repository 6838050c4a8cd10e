"""The Java process of Spark in this process."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext


def end_jvm() -> None:
    """End Spark's process if there is one. No session runs in it any more.

    Its producers would go on looking for a broker that is gone, and the next session would get the
    class path of this one.
    """
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
