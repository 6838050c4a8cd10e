"""query add, list, show, plan, explain, start, stop, remove."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.placement import Placement
from catalog.plan import Plan
from catalog.stored_form import from_stored
from secadmin.cli.caret import caret_lines
from secadmin.cli.context import cli_of
from secadmin.cli.options import QueryName
from secadmin.cli.plan_explanation import ExplainedNode, explained, explanation_tree
from secadmin.cli.plan_svg import write_images
from secadmin.cli.plan_tree import output_tree
from secadmin.cli.query_check import show_check
from secadmin.cli.text_file import not_empty, text_of

app = typer.Typer(no_args_is_help=True, help="Queries.")


class Language(StrEnum):
    """The languages of queries."""

    SQL = "sql"
    BOREALIS = "borealis"
    USER_QUERY = "user-query"


class Semantics(StrEnum):
    """What a subscriber gets of a result that comes from tuples of which it may not see all."""

    STRONG = "strong"
    VIEW = "view"
    ISOLATED = "isolated"
    EXACT = "exact"


class QueryTextError(InvalidInput):
    """A mistake in a query text. `more` has the lines that show its position."""

    def __init__(self, error: InvalidInput, text: str) -> None:
        super().__init__(error.detail)
        self.position = error.position
        self.more = caret_lines(text, error.position) if error.position else []


@app.command()
def add(  # noqa: PLR0913, PLR0917  # one parameter for each option
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    file: Annotated[Path, typer.Argument(metavar="FILE", allow_dash=True)],
    language: Annotated[
        Language | None, typer.Option(help="Default: sql for FILE.sql, borealis for FILE.xml.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Name of the output; not for a Borealis diagram.")
    ] = None,
    as_roles: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="ROLE",
            help="Read the streams as this role sees them. Several roles: give it again.",
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(metavar="[COMPANY, _, T]", help="Read only what this level dominates."),
    ] = None,
    semantics: Annotated[
        Semantics | None,
        typer.Option(
            help="strong: results that a subscriber may see all of. view: what the query gives "
            "over the tuples that the subscriber may see. isolated: as view, and each delivery "
            "class runs apart. exact: results by one role of a subscriber alone. Default: strong."
        ),
    ] = None,
    accept_empty: Annotated[
        bool,
        typer.Option("--accept-empty", help="Add it even if policies leave it no tuple at all."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Add nothing. Say what it needs, and whom it would reach."),
    ] = False,
) -> None:
    """Add a query from a file (- is standard input) and start it."""
    written = language or _language_of(file)
    text = not_empty(sys.stdin.read(), "standard input") if str(file) == "-" else text_of(file)
    optional = {
        "output": output,
        "as_roles": as_roles,
        "level": level,
        "semantics": semantics.value if semantics else None,
        "accept_empty": accept_empty,
    }
    body: dict[str, Any] = {"name": name, "language": written.value, "text": text}
    body |= {key: value for key, value in optional.items() if value}
    cli = cli_of(ctx)
    with cli.api() as api:
        try:
            answer = api.post("queries", *(["check"] if check else []), body=body)
        except InvalidInput as error:
            raise QueryTextError(error, text) from None
    if cli.screen.answered(answer):
        return
    if check:
        show_check(cli.screen, answer)
        return
    cli.screen.line(f"added the query {name}")
    for made in answer["outputs"]:
        cli.screen.line(f"  output {made['name']} ({_attributes(made['attributes'])})")
    for note in answer.get("notes", ()):
        cli.screen.note(note)


def _language_of(file: Path) -> Language:
    match file.suffix.lower():
        case ".sql":
            return Language.SQL
        case ".xml":
            return Language.BOREALIS
    known = ", ".join(Language)
    raise InvalidInput(f"cannot tell the language of {file}; give --language with one of {known}")


def _attributes(attributes: list[dict[str, Any]]) -> str:
    return ", ".join(f"{attribute['name']} {attribute['type']}" for attribute in attributes)


@app.command("list")
def list_queries(
    ctx: typer.Context,
    role: Annotated[
        str | None, typer.Option(help="Only those of this role's space (query add --as).")
    ] = None,
) -> None:
    """List the queries that you may view."""
    cli = cli_of(ctx)
    with cli.api() as api:
        rows: list[dict[str, Any]] = api.get("queries")
    if role is not None:
        rows = [row for row in rows if row["roles"] == [role]]
    if not cli.screen.json:
        rows = [{name: value for name, value in row.items() if name != "text"} for row in rows]
    cli.screen.rows(rows, "there is no query that you may view")


@app.command()
def show(
    ctx: typer.Context,
    name: QueryName,
    sql: Annotated[bool, typer.Option("--sql", help="Show its plans as SQL.")] = False,
    xml: Annotated[
        bool, typer.Option("--xml", help="Show its plans as a Borealis diagram.")
    ] = False,
) -> None:
    """Show a query, its state and its text, or its plans in one of the two languages."""
    cli = cli_of(ctx)
    if sql and xml:
        raise InvalidInput("give one of --sql and --xml")
    with cli.api() as api:
        if sql or xml:
            written = api.get("queries", name, "plan", language="sql" if sql else "borealis")
            if not cli.screen.answered(written):
                cli.screen.text(written["text"].rstrip("\n"))
            return
        answer: dict[str, Any] = api.get("queries", name)
    if cli.screen.answered(answer):
        return
    text = answer.pop("text", "")
    cli.screen.fields(answer)
    if text:
        cli.screen.text("\n" + text.rstrip("\n"))


@app.command()
def plan(ctx: typer.Context, name: QueryName) -> None:
    """Show what a query does, as a tree from its outputs down to its streams."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("queries", name, "plan")
    if cli.screen.answered(answer):
        return
    for output in answer["outputs"]:
        try:
            cli.screen.tree(output_tree(output))
        except (ValueError, TypeError):
            cli.screen.note("this version does not know the form of the plan; here it is as JSON")
            cli.screen.answer(output)


@app.command()
def explain(
    ctx: typer.Context,
    name: QueryName,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write it as an image, too.")
    ] = None,
) -> None:
    """Show for each node of a query's plan what it gives, with which label, keeps and sends when.

    An image has one output. If the query has several, their names are added to the file's name.
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("queries", name, "plan")
    try:
        found = {each["name"]: _explained(each) for each in answer["outputs"]}
    except (ValueError, TypeError):
        raise InvalidInput(
            "this version does not know the form of the plan; use that of the server"
        ) from None
    if svg is not None:
        write_images(svg, found)
    if cli.screen.answered({name: asdict(each) for name, each in found.items()}):
        return
    for each in found.values():
        cli.screen.tree(explanation_tree(each))


def _explained(output: dict[str, Any]) -> ExplainedNode:
    plan = analyse(from_stored(Plan, output["plan"]))
    return explained(output["name"], plan, Placement(output["placement"]))


@app.command()
def start(ctx: typer.Context, name: QueryName) -> None:
    """Start a stopped query. It goes on where it stopped, or anew if policies have changed."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("queries", name, "start")
    cli.screen.line(f"{name} will run")


@app.command()
def stop(ctx: typer.Context, name: QueryName) -> None:
    """Stop a query."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("queries", name, "stop")
    cli.screen.line(f"{name} will stop")


@app.command()
def remove(ctx: typer.Context, name: QueryName) -> None:
    """Remove a query with its outputs."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("queries", name)
    cli.screen.line(f"removed the query {name}")
