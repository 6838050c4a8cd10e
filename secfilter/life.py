"""Files that say whether an engine's process is alive and how it ended."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

READY_FILE = "SECFILTER_READY_FILE"
# An engine tells the catalog so often that it is alive.
BEAT_S = 2.0
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

    A thread of its own does that (`secfilter.watchdog`), as long as the engine's loop turns. So a
    process that gives no sign stands still as a whole. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._is_ready = False

    def starting(self) -> None:
        """Tell that this process is not ready, or not any more. The file is not there then."""
        with self._lock:
            self._is_ready = False
            if name := os.environ.get(READY_FILE):
                Path(name).unlink(missing_ok=True)

    def ready(self) -> None:
        """Tell that this process is ready."""
        with self._lock:
            if not self._is_ready:
                self._is_ready = True
                self._tell()

    def give(self) -> None:
        """Tell that this process goes on, if it is ready."""
        with self._lock:
            if self._is_ready:
                self._tell()

    def _tell(self) -> None:
        self._count += 1
        if name := os.environ.get(READY_FILE):
            file = Path(name)
            fresh = file.with_name(file.name + ".new")
            fresh.touch(mode=0o600)
            fresh.write_text(str(self._count))
            fresh.replace(file)
