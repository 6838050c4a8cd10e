"""output show, weak."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import typer

from secadmin.cli.context import cli_of
from secadmin.cli.durations import duration_words
from secadmin.cli.options import OutputName

app = typer.Typer(no_args_is_help=True, help="Outputs of queries.")


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


@app.command()
def show(ctx: typer.Context, name: OutputName) -> None:
    """Show an output's attributes and semantics."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer: dict[str, Any] = api.get("outputs", name)
    if cli.screen.answered(answer):
        return
    attributes = answer.pop("attributes", [])
    kept = answer.pop("retention_ms", None)
    cli.screen.fields({**answer, "retention": duration_words(kept) if kept else None})
    cli.screen.line("")
    cli.screen.rows(attributes, "no attributes")


@app.command()
def weak(ctx: typer.Context, name: OutputName, switch: Switch) -> None:
    """Turn weak semantics on or off: with it, one readable source is enough to see a result.

    All subscriptions move to new topics.
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        api.put("outputs", name, "semantics", body={"weak": switch is Switch.ON})
    cli.screen.line(f"{name} is {'weak' if switch is Switch.ON else 'strong'}")
