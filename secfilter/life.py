"""Files that say whether an engine's process is alive and how it ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

READY_FILE = "SECFILTER_READY_FILE"
EVERY_S = 2.0
_BEGUN = "begun"


class Life:
    """A mark in the engine's folder. It exists from the start until a normal end."""

    def __init__(self, folder: Path) -> None:
        self._begun = folder / _BEGUN

    def has_died(self) -> bool:
        """Whether the mark of the engine's last process is still there, and not accounted for."""
        return self._begun.exists()

    def begin(self) -> None:
        """Set the mark."""
        self._begun.touch(mode=0o600)

    def end(self) -> None:
        """Delete the mark: the process ends normally, or its death is accounted for."""
        self._begun.unlink(missing_ok=True)


class Signs:
    """Tells the parent process that this one is ready and goes on, by changing a file.

    It goes on if its loop turns. What the loop calls may take long if the catalog is away; so each
    call that ends is a sign, too. A process that gives no sign hangs.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._count = 0
        self._next: float | None = None

    def starting(self) -> None:
        """Tell that this process is not ready, or not any more. The file is not there then."""
        self._next = None
        if name := os.environ.get(READY_FILE):
            Path(name).unlink(missing_ok=True)

    def ready(self) -> None:
        """Tell that this process is ready."""
        if self._next is None:
            self._tell()

    def give(self) -> None:
        """Tell that this process goes on, if it is ready, every two seconds at most."""
        if self._next is not None and self._clock() >= self._next:
            self._tell()

    def _tell(self) -> None:
        self._next = self._clock() + EVERY_S
        self._count += 1
        if name := os.environ.get(READY_FILE):
            file = Path(name)
            fresh = file.with_name(file.name + ".new")
            fresh.touch(mode=0o600)
            fresh.write_text(str(self._count))
            fresh.replace(file)
