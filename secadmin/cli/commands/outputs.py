"""output show, weak, explain."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from secadmin.cli.context import cli_of
from secadmin.cli.durations import duration_words
from secadmin.cli.options import OutputName, UserName

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


@app.command()
def explain(
    ctx: typer.Context,
    name: OutputName,
    user: UserName,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Such as 2,64.")],
) -> None:
    """Explain why a user gets a record with this label, or does not get it.

    LABEL is the header `label` of a record. `secadmin consume --json` shows it.

    Example: secadmin output explain big ann 2,64
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("outputs", name, "explanation", user=user, label=label)
    if cli.screen.answered(answer):
        return
    rows = [
        {
            "the label has": each["means"],
            "needs": each["given_by"],
            user: "has it" if each["held"] else "does not have it",
        }
        for each in answer["categories"]
    ]
    cli.screen.rows(rows, "the label is empty: everybody may see the record")
    for obstacle in answer["obstacles"]:
        cli.screen.note(obstacle)
    gets = "gets" if answer["visible"] else "does not get"
    how = " (weak delivery: one source is enough)" if answer["weak"] else ""
    cli.screen.line(f"{user} {gets} such a record, with all roles active{how}")
