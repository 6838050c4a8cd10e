"""role add, list, remove, junior."""

from __future__ import annotations

from typing import Annotated

import typer

from secadmin.cli.context import cli_of

app = typer.Typer(no_args_is_help=True, help="Roles and their hierarchy.")
RoleName = Annotated[str, typer.Argument(metavar="ROLE")]


@app.command()
def add(ctx: typer.Context, role: RoleName) -> None:
    """Add a role that holds nothing yet."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("roles", body={"name": role})
    if cli.screen.answered(answer):
        return
    cli.screen.line(f"added the role {role}")


@app.command("list")
def list_roles(ctx: typer.Context) -> None:
    """List the roles with their juniors."""
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.rows(api.get("roles"), "no roles")


@app.command()
def remove(ctx: typer.Context, role: RoleName) -> None:
    """Remove a role with its grants. Accesses that were made with it end at once."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("roles", role)
    cli.screen.line(f"removed the role {role}")


@app.command()
def junior(
    ctx: typer.Context,
    senior: Annotated[str, typer.Argument(metavar="SENIOR")],
    role: Annotated[str, typer.Argument(metavar="JUNIOR")],
    remove: Annotated[
        bool, typer.Option("--remove", help="Take the junior role away again.")
    ] = False,
) -> None:
    """Let the senior role hold everything that the junior role holds."""
    cli = cli_of(ctx)
    with cli.api() as api:
        if remove:
            api.delete("roles", senior, "juniors", role)
            cli.screen.line(f"{senior} does not hold what {role} holds")
            return
        answer = api.post("roles", senior, "juniors", body={"role": role})
    if cli.screen.answered(answer):
        return
    cli.screen.line(f"{senior} holds what {role} holds")
    cli.screen.warnings(answer)
