"""Waiting for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 30.0


def wait_until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Return when the condition is true; a test that waits for too long fails with `what`."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)
