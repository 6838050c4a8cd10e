"""Waiting for what other threads bring about."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 120.0
_LOOK_S = 0.005


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Look again and again until the condition holds, without taking the processor from it."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited too long: {what}"
        time.sleep(_LOOK_S)
