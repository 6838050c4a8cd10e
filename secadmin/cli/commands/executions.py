"""execution list, stop, remove, weak."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from secadmin.cli.commands.outputs import Switch
from secadmin.cli.context import cli_of

app = typer.Typer(no_args_is_help=True, help="Executions by id, for administrators.")
Id = Annotated[int, typer.Argument(metavar="ID", min=1)]


@app.command("list")
def list_executions(ctx: typer.Context) -> None:
    """List executions with their owners and their use of the platform."""
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.rows(api.get("executions"), "nothing runs")


@app.command()
def stop(ctx: typer.Context, execution: Id) -> None:
    """Stop the query that an execution belongs to."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("executions", str(execution), "stop")
    if not cli.screen.answered(answer):
        cli.screen.line(f"stopped {ids_of(answer['stopped'])}")


@app.command()
def remove(ctx: typer.Context, execution: Id) -> None:
    """Remove the query that an execution belongs to; its subscriptions end at once."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.delete("executions", str(execution))
    if not cli.screen.answered(answer):
        cli.screen.line(f"removed {ids_of(answer['removed'])}")


@app.command()
def weak(ctx: typer.Context, execution: Id, switch: Switch) -> None:
    """Turn weak semantics of an execution's output on or off. All subscriptions move."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.put("executions", str(execution), "semantics", body={"weak": switch is Switch.ON})
    cli.screen.line(f"execution {execution} is {'weak' if switch is Switch.ON else 'strong'}")


def ids_of(ids: list[Any]) -> str:
    """A text with the ids of executions."""
    return f"executions {', '.join(map(str, ids))}" if ids else "nothing: it had stopped before"
