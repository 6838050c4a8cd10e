"""The parts of the long lane, and what each gave last.

The whole lane takes many hours, so it runs in parts of about an hour. `tests/long_lane.json`
keeps the last whole run of each part, with its commit. So the parts may run on several days, and
what they gave still shows as one.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.commits import commit_of_code

_ROOT = Path(__file__).parent.parent
RESULTS = _ROOT / "tests" / "long_lane.json"
PART = "TEST_PART"
"""The environment variable that says which part a run is."""
AGAIN = ":again"
"""It ends with this if only those of its tests run that failed."""


@dataclass(frozen=True)
class Part:
    """Tests that run together: files or folders, and by how many processes at once."""

    paths: tuple[str, ...]
    workers: int = 1


def _differential(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/differential/test_{name}.py" for name in names)


def _platforms(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/integration/test_{name}.py" for name in names)


PARTS = {
    "unit": Part(("tests/unit",), workers=2),
    "queries": Part(
        _differential(
            *("borealis", "declared", "delivery", "functions", "fused", "growing_labels"),
            *("mixed_streams", "nested", "papers", "standing", "updates", "views"),
        ),
        workers=2,
    ),
    "sql": Part(_differential("nexmark", "sql"), workers=2),
    "generated": Part(
        _differential("canonical", "generated", "generated_operators", "generator"), workers=2
    ),
    "classes": Part(
        _differential(
            *("class_streams", "class_views", "difference_streams", "exact", "isolated_streams")
        ),
        workers=2,
    ),
    "labels": Part(_differential("levels", "role_sets"), workers=2),
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
    # Each run of it takes all cores by itself.
    "mutation": Part(("tests/mutation",)),
}
"""The parts by name. Each file of tests is in one of them."""


@dataclass(frozen=True)
class Result:
    """What a whole run of a part gave: numbers of tests, how long it took, when, on what code.

    `failed` are the tests that fail. Those that failed in the whole run, and passed when they ran
    again, count as passed; `again` is the commit of that.
    """

    passed: int
    failed: tuple[str, ...]
    skipped: int
    minutes: float
    ended: str
    commit: str
    again: str = ""


def last_results() -> dict[str, Result]:
    """What each part gave when it ran last; none for a part that never ran whole."""
    if not RESULTS.exists():
        return {}
    return {name: _read(each) for name, each in json.loads(RESULTS.read_text()).items()}


class Recorder:
    """A plugin of pytest that notes what a part gave, if all of it ran to the end.

    With `again` only those of its tests run that failed.
    """

    def __init__(self, part: str, *, again: bool = False) -> None:
        self._part, self._again = part, again
        self._began = time.monotonic()
        # What is tested is the code as it was read, whatever is committed meanwhile.
        self._commit = commit_of_code(RESULTS)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Note the numbers that the summary line shows."""
        stats = terminalreporter.stats
        ran = exitstatus <= pytest.ExitCode.TESTS_FAILED and not stats.get("deselected")
        if not ran or terminalreporter.config.option.collectonly:
            return
        bad = [*stats.get("failed", ()), *stats.get("error", ())]
        failed = tuple(sorted({each.nodeid for each in bad}))
        # A test that passes and cannot be taken down has failed.
        passed = sum(each.nodeid not in failed for each in stats.get("passed", ()))
        skipped = len(stats.get("skipped", ()))
        results = last_results()
        if self._again:
            last = results[self._part]
            more = last.passed + passed
            results[self._part] = replace(last, passed=more, failed=failed, again=self._commit)
        else:
            minutes = round((time.monotonic() - self._began) / 60, 1)
            ended = datetime.now(UTC).isoformat(timespec="minutes")
            results[self._part] = Result(passed, failed, skipped, minutes, ended, self._commit)
        kept = {name: asdict(results[name]) for name in PARTS if name in results}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def recorder_of_this_run() -> Recorder | None:
    """Notes what this process runs, if it runs a part. What it starts in turn runs none."""
    what = os.environ.pop(PART, "")
    part = what.removesuffix(AGAIN)
    return Recorder(part, again=part != what) if part else None


def _read(kept: dict[str, Any]) -> Result:
    return Result(**{**kept, "failed": tuple(kept["failed"])})
