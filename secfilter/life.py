"""Files that say whether an engine's process is alive and how it ended."""

from __future__ import annotations

import os
from pathlib import Path

READY_FILE = "SECFILTER_READY_FILE"
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


def tell_starting() -> None:
    """Tell the parent process that this one is not ready. The file then does not change."""
    if name := os.environ.get(READY_FILE):
        Path(name).unlink(missing_ok=True)


def tell_alive(beats: int) -> None:
    """Tell the parent process that this one is ready and alive, by changing the file."""
    if name := os.environ.get(READY_FILE):
        file = Path(name)
        fresh = file.with_name(file.name + ".new")
        fresh.touch(mode=0o600)
        fresh.write_text(str(beats))
        fresh.replace(file)
