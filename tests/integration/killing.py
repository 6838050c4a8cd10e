"""Ends a platform at once, as a crash of its machine would."""

from __future__ import annotations

from pathlib import Path

from deploy.part_names import SUPERVISOR, part_names
from deploy.processes import ManagedProcess


def kill_everything(state: Path) -> None:
    """Kill all parts of the platform in this folder, first the one that would start them again."""
    for name in (SUPERVISOR, *part_names()):
        ManagedProcess(name, state).kill()
