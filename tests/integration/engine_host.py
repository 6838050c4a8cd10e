"""A machine on which an engine may run, under a process manager."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

# The exit code of an engine whose work another process does.
REFUSED = 6


@dataclass(eq=False)
class Host(threading.Thread):
    """Starts an engine whenever it ends: it is refused, or it works."""

    launch: Callable[[], subprocess.Popen[bytes]]
    refused: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        while not self._over.wait(1):
            self._process = self.launch()
            if self._process.wait() == REFUSED:
                self.refused.set()

    def kill(self) -> None:
        """Kill the engine with its Spark. The process manager starts it again."""
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Start nothing any more."""
        self._over.set()
