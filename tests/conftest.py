"""What all tests share: one Spark session and one PostgreSQL server for the whole run."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from pyspark.sql import SparkSession
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from deploy.runtime import ensure_fast_start, ensure_runtime
from secfilter.session import build_session
from tests.jvm import end_jvm
from tests.lanes import is_long
from tests.parts import recorder_of_this_run
from tests.postgresql import postgresql

__all__ = ["postgresql", "spark"]

_INTEGRATION = "tests/integration/"
# What shares a broker: each worker has one. Other integration tests start whole platforms.
_SHARING = {
    "secfilter": (f"{_INTEGRATION}secfilter/",),
    "service": (f"{_INTEGRATION}service/",),
    "kafka": tuple(
        f"{_INTEGRATION}{name}" for name in ("kafka/", "test_broker", "test_container_broker")
    ),
}
_PARTS: tuple[str | tuple[str, ...], ...] = (
    *_SHARING.values(),
    _INTEGRATION,
    "tests/differential/",
    "tests/unit/",
)
"""Where tests are. Those that take longest start first, so that the workers end together."""
_FILLER = "gw2"
"""The third worker. It takes the time that the first two leave: both wait for Kafka and Spark."""
_OPTIONS = {
    "spark.sql.streaming.realTimeMode.minBatchDuration": "200ms",
    "spark.driver.memory": "2g",
}
# A machine may be slow: how long an example takes is no test.
hypothesis.settings.register_profile("patient", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Asked to end, a run ends as with Ctrl-C: what it started, containers too, is stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if os.environ.get("PYTEST_XDIST_WORKER") == _FILLER:
        os.nice(10)
    if (recorder := recorder_of_this_run()) is not None:
        config.pluginmanager.register(recorder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Longest parts first; in the sample lane, leave out what belongs to the long one alone."""
    items.sort(key=lambda item: _turn(item.nodeid))
    if is_long():
        return
    left_out = {item for item in items if item.get_closest_marker("long")}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _turn(nodeid: str) -> int:
    return next((turn for turn, at in enumerate(_PARTS) if nodeid.startswith(at)), len(_PARTS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Of several workers (`-n 3`) each runs whole parts of what needs a broker."""
    config.option.loadscopereorder = False  # the order is that of `_turn`
    return _Parts(config, log)


class _Parts(LoadScopeScheduling):
    """What shares a broker is a part, and each other file is one.

    Two workers take parts from the beginning. The filler takes files from the end, which need no
    broker, and none that starts a platform.
    """

    def _split_scope(self, nodeid: str) -> str:
        sharing = (name for name, files in _SHARING.items() if nodeid.startswith(files))
        return next(sharing, nodeid.split("::", 1)[0])

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node.gateway.id == _FILLER:
            last = next(reversed(self.workqueue))
            if last in _SHARING or last.startswith(_INTEGRATION):
                node.shutdown()
                return
            self.workqueue.move_to_end(last, last=False)
        super()._assign_work_unit(node)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session as the platform builds it, with the Kafka connector."""
    os.umask(0o077)
    runtime = ensure_runtime()
    ensure_fast_start(runtime)
    session = build_session("local[16]", runtime.jars.connector, _OPTIONS)
    yield session
    session.stop()
    end_jvm()
