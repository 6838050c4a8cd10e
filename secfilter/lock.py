"""One runner at a time on one checkpoint folder."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from catalog.errors import Conflict

_TAKEN = "another runner works on the folder {}; stop it first"


@contextmanager
def runner_lock(folder: Path) -> Iterator[None]:
    """Hold the folder for this process. Raises Conflict where another process does."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    with (folder / "runner.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(_TAKEN.format(folder)) from None
        yield


def lock_engine(spark: SparkSession, folder: Path, timeout_s: float = 30.0) -> object:
    """Hold the folder for Spark's own process, for as long as that lives; keep the result.

    After kill -9 of a runner its JVM goes on writing for a moment; so the next one waits for it.
    Raises Conflict where it does not end in time.
    """
    jvm: Any = spark._jvm
    file = jvm.java.io.RandomAccessFile(str(folder / "engine.lock"), "rw")
    deadline = time.monotonic() + timeout_s
    while (lock := file.getChannel().tryLock()) is None:
        if time.monotonic() > deadline:
            raise Conflict(_TAKEN.format(folder))
        time.sleep(0.1)
    return lock, file
