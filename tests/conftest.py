"""What all tests share: one Spark session and one PostgreSQL server for the whole run."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from deploy.runtime import ensure_runtime
from secfilter.session import build_session
from tests.postgresql import postgresql

__all__ = ["postgresql", "spark"]

_INTEGRATION = Path(__file__).with_name("integration")
_OPTIONS = {
    "spark.sql.streaming.realTimeMode.minBatchDuration": "200ms",
    "spark.driver.memory": "2g",
}


def pytest_configure() -> None:
    """Asked to end, a run ends as with Ctrl-C: what it started, containers too, is stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two parts that may run beside each other: what needs a broker, and all else.

    Each is one worker's, with one Spark session (`-n 2 --dist loadgroup`).
    """
    for item in items:
        part = "broker" if _INTEGRATION in item.path.parents else "rest"
        item.add_marker(pytest.mark.xdist_group(part))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session as the platform builds it, with the Kafka connector."""
    os.umask(0o077)
    session = build_session("local[16]", ensure_runtime().jars.connector, _OPTIONS)
    yield session
    session.stop()
    _end_jvm()


def _end_jvm() -> None:
    """End Spark's process: its producers would go on looking for a broker that is gone."""
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
