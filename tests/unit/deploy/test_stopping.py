"""How long the runner is left to end its batches, which the settings say."""

import sys
from pathlib import Path

import pytest

from catalog.settings import Settings
from deploy.part_names import part_names
from deploy.processes import ManagedProcess
from deploy.settings import merged, write_settings
from deploy.stopping import stop_all
from tests.unit.deploy.test_settings import _local

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.parametrize(("query_ms", "least_s"), [(None, 80), (600_000, 750)])
def test_the_runner_is_left_as_long_as_its_longest_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query_ms: int | None, least_s: int
) -> None:
    options = {} if query_ms is None else {"secfilter.query_ms": str(query_ms)}
    table = merged(_local(tmp_path), {"secfilter": {"options": dict(options)}})
    Settings.load(write_settings(table, tmp_path / "settings.toml"))
    waits: dict[str, float] = {}

    def stop(process: ManagedProcess, timeout_s: float) -> None:
        waits[process.name] = timeout_s
        process.kill()

    monkeypatch.setattr(ManagedProcess, "stop", stop)
    told: list[str] = []
    for name in part_names():
        ManagedProcess(name, tmp_path).start(SLEEP)
    assert stop_all(tmp_path, told.append) == list(part_names())
    for engine in ("secfilter-ingest", "secfilter-query-1"):
        assert least_s < waits[engine] < least_s + 30
    assert waits["secadmin"] < 100
    assert f"up to {round(waits['secfilter-query-1']) - 10} seconds" in told[0]
