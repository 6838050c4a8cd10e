"""How an engine's process lived and ended, in files that outlive it."""

from __future__ import annotations

import os
from pathlib import Path

READY_FILE = "SECFILTER_READY_FILE"
_BEGUN = "begun"


class Life:
    """The engine's mark in its folder: it is there from the beginning until an end in order."""

    def __init__(self, folder: Path) -> None:
        self._begun = folder / _BEGUN

    def has_died(self) -> bool:
        """Whether the mark of the engine's last process is still there."""
        return self._begun.exists()

    def begin(self) -> None:
        """Set the mark."""
        self._begun.touch(mode=0o600)

    def end(self) -> None:
        """Take the mark away: the process ends as it should."""
        self._begun.unlink(missing_ok=True)


def tell_starting() -> None:
    """Tell whoever started the process that it is not ready: nothing changes for a while."""
    if name := os.environ.get(READY_FILE):
        Path(name).unlink(missing_ok=True)


def tell_alive(beats: int) -> None:
    """Tell whoever started the process that it is ready, and goes on: the file changes."""
    if name := os.environ.get(READY_FILE):
        file = Path(name)
        fresh = file.with_name(file.name + ".new")
        fresh.touch(mode=0o600)
        fresh.write_text(str(beats))
        fresh.replace(file)
