"""Which code something was run on."""

from __future__ import annotations

import subprocess
from pathlib import Path

_ROOT = Path(__file__).parent.parent


def commit_of_code(*besides: Path) -> str:
    """The commit of the code, and a `+` if more differs from it than files of these names."""
    left_out = (f":!*{each.name}" for each in besides)
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *left_out)
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=_ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
