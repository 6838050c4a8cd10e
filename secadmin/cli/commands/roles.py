"""role add, list, remove, junior, limits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from catalog.errors import InvalidInput
from secadmin.cli.context import cli_of
from secadmin.cli.durations import duration_words, milliseconds
from secadmin.cli.screen import Screen

app = typer.Typer(no_args_is_help=True, help="Roles and their hierarchy.")
# What an option is called whose limit has another name in the API.
_WORDS = {"window_ms": "window", "slide_ms": "slide", "window_rows": "rows"}
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


@app.command()
def limits(  # noqa: PLR0913, PLR0917  # one parameter for each option
    ctx: typer.Context,
    role: RoleName,
    operators: Annotated[
        str | None, typer.Option(help="The operators that it allows: join,window,aggregate.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="DURATION", help="The longest window.")
    ] = None,
    slide: Annotated[
        str | None, typer.Option(metavar="DURATION", help="The shortest slide of a window.")
    ] = None,
    windows: Annotated[
        int | None, typer.Option(help="In so many windows may a tuple be at once.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="The most rows of a window of rows.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Let it allow everything.")] = False,
) -> None:
    """Show or set what a role with ADD QUERY allows in queries.

    What you do not name has no limit. The limits take the place of those that the role had.
    """
    cli = cli_of(ctx)
    wanted: dict[str, Any] = {"windows": windows, "window_rows": rows}
    if operators is not None:
        wanted["operators"] = [name.strip() for name in operators.split(",") if name.strip()]
    wanted["window_ms"] = None if window is None else milliseconds(window)
    wanted["slide_ms"] = None if slide is None else milliseconds(slide)
    body = {name: value for name, value in wanted.items() if value is not None}
    if remove and body:
        raise InvalidInput("give limits, or --remove")
    with cli.api() as api:
        if remove:
            api.delete("roles", role, "operator-limits")
            cli.screen.line(f"{role} has no limits")
        elif body:
            answer = api.put("roles", role, "operator-limits", body=body)
            if not cli.screen.answered(answer):
                stopped = len(answer["stopped"])
                also = f"; {stopped} executions were stopped" if stopped else ""
                cli.screen.line(f"set the limits of {role}{also}")
        else:
            _show_limits(cli.screen, role, api.get("roles", role, "operator-limits"))


def _show_limits(screen: Screen, role: str, answer: dict[str, Any]) -> None:
    """What the role allows, with durations as people write them."""
    found = answer["limits"]
    if screen.answered(answer):
        return
    if found is None:
        screen.line(f"{role} has no limits")
        return
    shown = {
        _WORDS.get(name, name): duration_words(value) if name.endswith("_ms") else value
        for name, value in found.items()
        if value is not None
    }
    screen.fields(shown)
