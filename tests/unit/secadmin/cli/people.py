"""Users who work at terminals of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from secadmin.cli.context import Seams
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service

PASSWORD = "correct horse battery"
NewUser = Callable[..., Terminal]


def terminal(folder: Path, service: Service, **seams: Any) -> Terminal:
    """A terminal with a profile of its own."""
    return Terminal(folder, Seams(transport=service.transport, **seams))


def log_in(at: Terminal, user: str, one_time: str) -> Terminal:
    """Log in for the first time, which asks for another password."""
    at.ok("login", user, "--password-stdin", text=f"{one_time}\n")
    at.ok("passwd", "--password-stdin", text=f"{one_time}\n{PASSWORD}\n")
    at.ok("login", user, "--password-stdin", text=f"{PASSWORD}\n")
    return at
