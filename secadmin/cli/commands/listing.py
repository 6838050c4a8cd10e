"""list: the objects of one kind that the user may view."""

from __future__ import annotations

import typer

from catalog.permission import ObjectKind
from secadmin.cli.context import cli_of


def add_list(app: typer.Typer, kind: ObjectKind) -> None:
    """Add the command `list` to the commands of a kind of object."""

    plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"

    @app.command("list", help=f"List the {plural} that you may view.")
    def list_objects(ctx: typer.Context) -> None:
        cli = cli_of(ctx)
        with cli.api() as api:
            rows = api.get("catalog", kind=kind.value)
        cli.screen.rows(rows, f"there is no {kind} that you may view")
