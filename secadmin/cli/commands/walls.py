"""wall show, choose, set, take, reset: the levels of users."""

from __future__ import annotations

from typing import Annotated

import typer

from catalog.errors import InvalidInput
from secadmin.cli.applied import await_applied
from secadmin.cli.commands.conflict_classes import ClassName
from secadmin.cli.context import cli_of
from secadmin.cli.options import UserName

app = typer.Typer(
    no_args_is_help=True, help="Walls: which companies of a conflict class a user may read."
)


@app.command()
def show(
    ctx: typer.Context,
    user: Annotated[str | None, typer.Argument(metavar="USER")] = None,
) -> None:
    """Show your level, or that of another user, class by class."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("users", user, "wall") if user else api.get("wall")
    if cli.screen.answered(answer):
        return
    rows = [
        {
            "conflict class": part["conflict_class"],
            "level": part["part"] or "not chosen yet",
            "by choice": "yes" if part["by_choice"] else "no",
        }
        for part in answer["levels"]
    ]
    cli.screen.rows(rows, "there is no level in any conflict class")


@app.command()
def choose(
    ctx: typer.Context,
    name: ClassName,
    company: Annotated[str, typer.Argument(metavar="COMPANY")],
) -> None:
    """Choose the company that you read. It closes the others of the class to you, for good."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("conflict-classes", name, "choice", body={"choice": company})
    cli.screen.line(f"you read {company}, and nobody else of {name}")


@app.command("set")
def set_level(
    ctx: typer.Context,
    name: ClassName,
    user: UserName,
    level: Annotated[str | None, typer.Argument(metavar="COMPANY|T|_")] = None,
    choice: Annotated[
        bool, typer.Option("--choice", help="The user chooses, by what it reads first.")
    ] = False,
) -> None:
    """Set the level of a user: a company, T for all companies of the class, or _ for none.

    After the command, nothing more arrives that the level does not dominate. It waits until what
    the user sends has the new level, too.

    Example: secadmin wall set COI1 ann Company1
    """
    if (level is None) != choice:
        raise InvalidInput("give a company, T or _; or --choice, which leaves it to the user")
    cli = cli_of(ctx)
    with cli.api() as api:
        api.put("conflict-classes", name, "levels", user, body={"part": level})
        await_applied(cli, lambda: bool(api.get("users", user, "wall")["applied"]))
    cli.screen.line(f"{user} chooses in {name}" if choice else f"{user} has {level} in {name}")


@app.command()
def take(ctx: typer.Context, name: ClassName, user: UserName) -> None:
    """Take the level of a user in a conflict class away."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("conflict-classes", name, "levels", user)
    cli.screen.line(f"{user} has no level in {name}")


@app.command()
def reset(ctx: typer.Context, name: ClassName, user: UserName) -> None:
    """Let a user that has chosen a company choose again. All accesses of the user end."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("conflict-classes", name, "levels", user, "reset")
    cli.screen.line(f"{user} chooses again in {name}; all accesses of {user} have ended")
