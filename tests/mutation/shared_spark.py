"""One Spark for all mutants of a module of the data plane: to start one takes longer than a test.

The session is made before the forks. A forked process talks to the same JVM over connections of its
own, and leaves it running.
"""

from __future__ import annotations

import threading
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from deploy.runtime import ensure_runtime
from secfilter.session import build_session

_kept: list[Any] = []


def start() -> None:
    """Start Spark, before the first fork."""
    build_session("local[4]", ensure_runtime().jars.connector, {"spark.driver.memory": "1g"})


def take_over() -> None:
    """In a forked process: use Spark as if it were one's own."""
    gateway: Any = SparkContext._gateway
    client = gateway._gateway_client
    # Were they collected, they would be shut down, and they are the parent's as well.
    _kept.extend((client.thread_connection, list(client.deque)))
    client.thread_connection = threading.local()
    client.deque.clear()
    gateway.shutdown = lambda *_: None
    SparkSession.stop = lambda self: None  # type: ignore[method-assign]
