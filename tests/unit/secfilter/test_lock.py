"""No two engines run one run: Spark's process locks it, and the lock ends with the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.errors import Conflict, Unavailable
from secfilter.lock import await_last_spark, engine_folder, lock_run, runner_lock

# As another engine's Java does it.
_OTHER = """
import fcntl, sys, time
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
time.sleep(60)
"""


def test_a_run_is_locked_until_its_engine_has_ended(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "lock"
    lock_run(spark, file).give_back()
    lock_run(spark, file).give_back()
    command = [sys.executable, "-c", _OTHER, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with pytest.raises(Unavailable, match="another engine still runs it"):
            lock_run(spark, file)
        other.kill()
        other.wait()
    lock_run(spark, file).give_back()


def test_an_engine_that_runs_a_run_does_not_take_its_lock_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """To look for it must not give it back either."""
    file = tmp_path / "lock"
    held = lock_run(spark, file)
    with pytest.raises(Unavailable):
        lock_run(spark, file)
    command = [sys.executable, "-c", _OTHER, str(file)]
    tried = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert b"BlockingIOError" in tried.stderr
    held.give_back()
    held.give_back()
    lock_run(spark, file).give_back()


def test_one_process_is_an_engine_at_a_time(tmp_path: Path) -> None:
    folder = engine_folder(tmp_path / "checkpoints", "query-1")
    other = engine_folder(tmp_path / "checkpoints", "query-2")
    taken = pytest.raises(Conflict, match="another process works as this engine")
    with runner_lock(folder), runner_lock(other), taken, runner_lock(folder):
        pass
    with runner_lock(folder):
        assert folder.stat().st_mode & 0o077 == 0


def test_an_engine_begins_when_the_spark_before_has_ended(tmp_path: Path) -> None:
    folder = engine_folder(tmp_path / "checkpoints", "query-1")
    await_last_spark(folder, 0.0)
    (folder / "engine.lock").touch()
    command = [sys.executable, "-c", _OTHER, str(folder / "engine.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with pytest.raises(Conflict, match="another process works as this engine"):
            await_last_spark(folder, 0.3)
        other.kill()
        other.wait()
    await_last_spark(folder, 0.0)
    # It keeps nothing: Spark's process takes the lock next.
    await_last_spark(folder, 0.0)
