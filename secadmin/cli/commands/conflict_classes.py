"""conflict-class add, show, company, remove."""

from __future__ import annotations

from typing import Annotated

import typer

from catalog.permission import ObjectKind
from secadmin.cli.completion import names_of
from secadmin.cli.context import cli_of

app = typer.Typer(
    no_args_is_help=True, help="Conflict classes: companies that compete with each other."
)
ClassName = Annotated[
    str, typer.Argument(metavar="CLASS", autocompletion=names_of(ObjectKind.CONFLICT_CLASS))
]


@app.command()
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CLASS")],
    companies: Annotated[list[str] | None, typer.Argument(metavar="COMPANY...")] = None,
) -> None:
    """Add a conflict class with its companies.

    Example: secadmin conflict-class add COI1 Company1 Company2
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("conflict-classes", body={"name": name, "companies": companies or []})
    if not cli.screen.answered(answer):
        cli.screen.line(f"added the conflict class {name}")


@app.command()
def show(ctx: typer.Context, name: ClassName) -> None:
    """Show the companies of a conflict class."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("conflict-classes", name)
    if not cli.screen.answered(answer):
        rows = [{"company": company} for company in answer["companies"]]
        cli.screen.rows(rows, f"{name} has no companies yet")


@app.command()
def company(
    ctx: typer.Context,
    name: ClassName,
    company: Annotated[str, typer.Argument(metavar="COMPANY")],
) -> None:
    """Add a company to a conflict class."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("conflict-classes", name, "companies", body={"company": company})
    cli.screen.line(f"{name} has the company {company}")


@app.command()
def remove(ctx: typer.Context, name: ClassName) -> None:
    """Remove a conflict class that no stream uses any more."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("conflict-classes", name)
    cli.screen.line(f"removed the conflict class {name}")
