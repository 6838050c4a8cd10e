"""Locks: each engine has one process at a time, and each run has one engine at a time.

All engines of a deployment share its checkpoint folder. Each engine has its own folder in it.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, TextIO
from weakref import WeakValueDictionary

from catalog.errors import Conflict, Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAKEN = "another process works as this engine on the folder {}; stop it first"
_POLL_S = 0.1
_ENGINE_LOCK = "engine.lock"


def engine_folder(checkpoints: Path, engine: str) -> Path:
    """The engine's own folder (mode 0700). It is made if it does not exist."""
    for folder in (checkpoints, checkpoints / ".engines", checkpoints / ".engines" / engine):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    return checkpoints / ".engines" / engine


@contextmanager
def runner_lock(folder: Path) -> Iterator[None]:
    """Hold the engine's folder for this process. Raises Conflict if another process holds it."""
    with (folder / "process.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(_TAKEN.format(folder)) from None
        yield


def await_last_spark(folder: Path, timeout_s: float = 30.0) -> None:
    """Wait until Spark's process of the engine's last process has ended.

    From then on nothing of the engine runs, because `runner_lock` is held. Raises Conflict if it
    does not end in time.
    """
    deadline = time.monotonic() + timeout_s
    # Java's lock is one of POSIX, as this one is. It is given back when the file is closed.
    with (folder / _ENGINE_LOCK).open("a") as file:
        while not _try_lock(file):
            if time.monotonic() > deadline:
                raise Conflict(_TAKEN.format(folder))
            time.sleep(_POLL_S)


def _try_lock(file: TextIO) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def lock_engine(spark: SparkSession, folder: Path, timeout_s: float = 30.0) -> object:
    """Hold the engine's folder for Spark's process, as long as it lives. Keep the result.

    If an engine is killed, its JVM keeps writing for a moment. So the next engine process waits for
    it here. Raises Conflict if it does not end in time.
    """
    lock = FileLock(spark, folder / _ENGINE_LOCK)
    deadline = time.monotonic() + timeout_s
    while not lock.take():
        if time.monotonic() > deadline:
            raise Conflict(_TAKEN.format(folder))
        time.sleep(_POLL_S)
    return lock


def lock_run(spark: SparkSession, file: Path) -> FileLock:
    """Lock a run for Spark's process, until the lock is given back or the process ends.

    Raises Unavailable if another engine still runs it, or this one.
    """
    lock = FileLock(spark, file)
    if not lock.take():
        raise Unavailable("another engine still runs it")
    return lock


class FileLock:
    """A lock of Spark's process on a file.

    The process holds it until it closes any of its descriptors of the file. So it never opens a
    file again that it has locked.
    """

    _held: ClassVar[WeakValueDictionary[Path, FileLock]] = WeakValueDictionary()
    _taking: ClassVar[Lock] = Lock()

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self._jvm: Any = spark._jvm
        self._path = file
        self._file: Any = None

    def take(self) -> bool:
        """Take the lock. Returns False if it is held, by another process or by this one."""
        with self._taking:
            if self._path in self._held:
                return False
            file = self._jvm.java.io.RandomAccessFile(str(self._path), "rw")
            if file.getChannel().tryLock() is None:
                file.close()
                return False
            self._file, self._held[self._path] = file, self
            return True

    def give_back(self) -> None:
        """Give the lock back. It may be given back twice."""
        with self._taking:
            if self._file is not None:
                self._file.close()
                self._file = None
                self._held.pop(self._path, None)
