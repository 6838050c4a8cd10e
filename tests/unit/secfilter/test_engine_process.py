"""The runner ends with Spark's process, and by itself when it is told to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from secfilter.engine_process import EXIT_CODE, engine_process

_RUNNER = """
import subprocess, sys, threading
from secfilter.engine_process import end_with
engine, stop = subprocess.Popen(["sleep", "1000"]), threading.Event()
end_with(engine, stop)
if sys.argv[1] == "stopping":
    stop.set()
engine.kill()
engine.wait()
threading.Event().wait(60 if sys.argv[1] == "running" else 0.1)
"""


_FULL = """
import threading
from secfilter.engine_process import end_with, engine_process
from secfilter.session import build_session
spark = build_session("local[1]", None, {"spark.driver.memory": "512m"})
end_with(engine_process(spark), threading.Event())
print("it runs", flush=True)
kept, java = spark._jvm.java.util.ArrayList(), spark._jvm.java
try:
    while True:
        kept.add(java.nio.ByteBuffer.allocate(64 * 1024 * 1024))
except Exception:
    # As a thread of an engine that waits for its next call.
    threading.Event().wait(60)
"""


@pytest.mark.parametrize(("doing", "code"), [("running", EXIT_CODE), ("stopping", 0)])
def test_the_runner_ends_with_its_engine(doing: str, code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _RUNNER, doing], capture_output=True, timeout=50, check=False
    )
    assert ended.returncode == code
    assert (b"Spark's process has ended" in ended.stderr) == (doing == "running")


@pytest.mark.long
def test_an_engine_without_free_memory_ends() -> None:
    """Its heap is full for real. A process that goes on with a full heap might hang for ever."""
    ended = subprocess.run(
        [sys.executable, "-c", _FULL], capture_output=True, timeout=120, check=False
    )
    assert ended.stdout.startswith(b"it runs"), ended.stderr
    assert b"OutOfMemoryError" in ended.stdout + ended.stderr
    assert b"Spark's process has ended" in ended.stderr
    assert ended.returncode == EXIT_CODE


def test_the_engine_is_sparks_process(spark: SparkSession) -> None:
    process = engine_process(spark)
    assert process.poll() is None
    arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
    assert "org.apache.spark.deploy.SparkSubmit" in arguments
    assert "-XX:+ExitOnOutOfMemoryError" in arguments
