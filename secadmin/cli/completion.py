"""Names of objects for the shell's completion, as the user may see them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import typer

from catalog.errors import PlatformError
from catalog.permission import ObjectKind, Permission
from secadmin.cli.context import Cli, Seams
from secadmin.cli.profile import environment_profile
from secadmin.cli.safe_text import is_safe
from secadmin.cli.screen import Screen


def names_of(kind: ObjectKind) -> Callable[[typer.Context, str], list[str]]:
    """A completion that asks the server for names. If this fails, it offers none."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            with _cli(ctx).api() as api:
                listed = api.get("catalog", kind=kind.value)
            names = [str(item["name"]) for item in listed]
        except (PlatformError, OSError, KeyError, TypeError):
            return []
        usable = (name for name in names if all(map(is_safe, name)))
        return [name for name in usable if name.startswith(incomplete)]

    return complete


def permissions(incomplete: str) -> list[str]:
    """Permissions with underscores, so that each is one word for the shell."""
    words = (permission.value.replace(" ", "_") for permission in Permission)
    return [word for word in words if word.startswith(incomplete.upper())]


def _cli(ctx: typer.Context) -> Cli:
    """Read the options here, because no callback runs during a completion."""
    given = ctx.find_root().params
    server = given.get("server") or os.environ.get("SECADMIN_URL")
    ca = given.get("ca") or os.environ.get("SECADMIN_CA")
    seams = ctx.find_object(Seams) or Seams()
    return Cli(Screen(), environment_profile(), server, Path(ca) if ca else None, seams)
