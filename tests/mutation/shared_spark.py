"""One Spark for all mutants of a module of the data plane: to start one takes longer than a test.

The session is made before the forks. A forked process talks to the same JVM over connections of its
own, and leaves it running.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.finalizer import ThreadSafeFinalizer
from pyspark import SparkContext
from pyspark.sql import SparkSession

from deploy.runtime import ensure_runtime
from secfilter.session import build_session

_kept: list[Any] = []


def start() -> None:
    """Start Spark, before the first fork."""
    build_session("local[4]", ensure_runtime().jars.connector, {"spark.driver.memory": "1g"})


@contextmanager
def taken_over() -> Iterator[None]:
    """In a forked process: use Spark as if it were one's own, and leave nothing behind in it."""
    gateway: Any = SparkContext._gateway
    client = gateway._gateway_client
    # Were they collected, they would be shut down, and they are the parent's as well.
    _kept.extend((client.thread_connection, list(client.deque)))
    client.thread_connection = threading.local()
    client.deque.clear()
    client.finalizer_deque.clear()
    of_parent = set(ThreadSafeFinalizer.finalizers)
    gateway.shutdown = lambda *_: None
    SparkSession.stop = lambda self: None  # type: ignore[method-assign]
    yield
    _give_back(client, of_parent)


def _give_back(client: Any, of_parent: set[str]) -> None:
    """Let Java forget the objects that this process made.

    A thread of py4j does so where they are collected, but a fork does not have that thread. After a
    hundred mutants Java would have no memory left, and each later one would seem to be noticed.
    """
    place = f"{client.address}{client.port}"
    made = {name.removeprefix(place) for name in ThreadSafeFinalizer.finalizers.keys() - of_parent}
    collected = {target for _, target in client.finalizer_deque}
    for target in made | collected:
        client.garbage_collect_object(target, enqueue=False)
