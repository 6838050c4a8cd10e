"""The parts of the long lane, and what each gave last.

The whole lane takes many hours, so it runs in parts of an hour or less. `tests/long_lane.json`
keeps the last whole run of each part, with its commit. So the parts may run on several days, and
what they gave still shows as one.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.commits import commit_of_code

_ROOT = Path(__file__).parent.parent
RESULTS = _ROOT / "tests" / "long_lane.json"
PART = "TEST_PART"
"""The environment variable that says which part a run is."""


@dataclass(frozen=True)
class Part:
    """Tests that run together: files or folders, and by how many processes at once."""

    paths: tuple[str, ...]
    workers: int = 1


def _platforms(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/integration/test_{name}.py" for name in names)


PARTS = {
    "unit": Part(("tests/unit",), workers=2),
    "queries": Part(("tests/differential",), workers=2),
    "kafka": Part(
        (
            "tests/integration/kafka",
            *_platforms("broker", "broker_flood", "broker_secrets", "container_broker"),
        )
    ),
    "service": Part(("tests/integration/service",)),
    "engine": Part(("tests/integration/secfilter",)),
    "platform": Part(
        (
            "tests/clients",
            *_platforms("backfill", "database_roles", "engine_back", "faults", "fraud"),
            *_platforms("left_out", "level_engines", "papers", "readme", "role_expressions"),
            *_platforms("scenario", "serial_rights", "stack", "tour", "users_outlive"),
            *_platforms("weather", "without_gaps"),
        )
    ),
    "cluster": Part(
        ("tests/integration/cluster", *_platforms("shared_state", "spark_cluster")),
    ),
    "mutation": Part(("tests/mutation",), workers=2),
}
"""The parts by name. Each file of tests is in one of them."""


@dataclass(frozen=True)
class Result:
    """What a whole run of a part gave: numbers of tests, how long it took, when, on what code."""

    passed: int
    failed: int
    skipped: int
    minutes: float
    ended: str
    commit: str


def last_results() -> dict[str, Result]:
    """What each part gave when it ran last; none for a part that never ran whole."""
    if not RESULTS.exists():
        return {}
    return {name: Result(**each) for name, each in json.loads(RESULTS.read_text()).items()}


class Recorder:
    """A plugin of pytest that notes what a part gave, if all of it ran to the end."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._began = time.monotonic()
        # What is tested is the code as it was read, whatever is committed meanwhile.
        self._commit = commit_of_code(RESULTS)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Note the numbers that the summary line shows."""
        found = {name: len(each) for name, each in terminalreporter.stats.items()}
        ran = exitstatus <= pytest.ExitCode.TESTS_FAILED and "deselected" not in found
        if not ran or terminalreporter.config.option.collectonly:
            return
        result = Result(
            passed=found.get("passed", 0),
            failed=found.get("failed", 0) + found.get("error", 0),
            skipped=found.get("skipped", 0),
            minutes=round((time.monotonic() - self._began) / 60, 1),
            ended=datetime.now(UTC).isoformat(timespec="minutes"),
            commit=self._commit,
        )
        all_results = {**last_results(), self._part: result}
        RESULTS.write_text(
            json.dumps({n: asdict(all_results[n]) for n in PARTS if n in all_results}, indent=1)
            + "\n"
        )


def take_part() -> str | None:
    """Which part this process runs, if it runs one. What it starts in turn runs none."""
    return os.environ.pop(PART, None)
