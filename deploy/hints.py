"""Commands that messages tell the reader to run, with the options without which they miss."""

from __future__ import annotations

import shlex
from pathlib import Path

from deploy.environment import ROOT

DEFAULT_STATE = ROOT / ".state"


def down_command(state: Path) -> str:
    """The command that stops the platform of that folder, for a shell."""
    return _command("down", state)


def up_command(state: Path, settings: Path | None = None) -> str:
    """The command that starts the platform of that folder, for a shell."""
    given = [] if settings is None else ["--settings", str(settings.resolve())]
    return _command("up", state, *given)


def _command(name: str, state: Path, *options: str) -> str:
    where = [] if state.resolve() == DEFAULT_STATE.resolve() else ["--state", str(state.resolve())]
    return shlex.join(["python3", "-m", "deploy", name, *where, *options])
