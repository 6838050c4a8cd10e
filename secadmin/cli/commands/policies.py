"""policy sender: who may see what one sends to a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from catalog.errors import InvalidInput
from secadmin.cli.context import cli_of
from secadmin.cli.options import StreamName

app = typer.Typer(no_args_is_help=True, help="Policies: who may see which tuples.")


@app.callback()
def policies() -> None:
    """Policies: who may see which tuples."""


@app.command()
def sender(
    ctx: typer.Context,
    stream: StreamName,
    expression: Annotated[
        str | None,
        typer.Argument(metavar="EXPRESSION", help="Roles with & and |, such as 'doctor & icu'."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove it: then what you send is refused.")
    ] = False,
) -> None:
    """Show, set or remove the roles that may see what you send to a stream.

    Example: secadmin policy sender vitals 'doctor | nurse'
    """
    if remove and expression is not None:
        raise InvalidInput("give an expression or --remove, not both")
    cli = cli_of(ctx)
    with cli.api() as api:
        if remove:
            api.delete("streams", stream, "sender-policy")
            cli.screen.line(f"what you send to {stream} is refused until you set a policy")
            return
        if expression is None:
            answer = api.get("streams", stream, "sender-policy")
        else:
            answer = api.put("streams", stream, "sender-policy", body={"expression": expression})
    if cli.screen.answered(answer):
        return
    told = answer["expression"] or "nobody: you have set no policy"
    cli.screen.line(f"what you send to {stream} is for {told}")
