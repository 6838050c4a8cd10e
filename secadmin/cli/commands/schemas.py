"""schema add, show, remove."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catalog.errors import InvalidInput
from secadmin.cli.context import cli_of
from secadmin.cli.options import SchemaName
from secadmin.cli.text_file import text_of
from secadmin.cli.words import parse_attribute, parse_schema_file

app = typer.Typer(no_args_is_help=True, help="Schemas: the attributes of a stream's tuples.")


@app.command()
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    attributes: Annotated[list[str] | None, typer.Argument(metavar="NAME:TYPE[!]...")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="A JSON file with the attributes.")
    ] = None,
) -> None:
    r"""Add a schema. An exclamation mark makes an attribute required.

    Types: boolean, bigint, double, string, timestamp, ARRAY\<type>,
    MAP\<STRING, type>, STRUCT\<name type, ...>.

    Example: secadmin schema add trades ts:timestamp! symbol:string! "tags:ARRAY\<STRING>"
    """
    if bool(attributes) == (file is not None):
        raise InvalidInput("name the attributes (ts:timestamp! price:double), or give --file JSON")
    wanted = (
        parse_schema_file(text_of(file))
        if file
        else [parse_attribute(text) for text in attributes or ()]
    )
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("schemas", body={"name": name, "attributes": wanted})
    if cli.screen.answered(answer):
        return
    cli.screen.line(f"added the schema {name}")


@app.command()
def show(ctx: typer.Context, name: SchemaName) -> None:
    """Show a schema's attributes."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("schemas", name)
    if cli.screen.answered(answer):
        return
    cli.screen.rows(answer["attributes"], "no attributes")


@app.command()
def remove(ctx: typer.Context, name: SchemaName) -> None:
    """Remove a schema that no stream uses any more."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("schemas", name)
    cli.screen.line(f"removed the schema {name}")
