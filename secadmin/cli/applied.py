"""Waits until ingest uses what a command has changed."""

from __future__ import annotations

import time
from collections.abc import Callable

from secadmin.cli.context import Cli

_APPLIED_S, _AGAIN_S = 120.0, 0.5


def await_applied(cli: Cli, is_applied: Callable[[], bool]) -> None:
    """Wait until the change is applied to all that ingest reads, or say that it is not yet."""
    deadline = time.monotonic() + _APPLIED_S
    while not is_applied():
        if time.monotonic() > deadline:
            cli.screen.note("the platform does not use it yet; see: secadmin health")
            return
        time.sleep(_AGAIN_S)
