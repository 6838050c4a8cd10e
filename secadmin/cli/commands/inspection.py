"""catalog, explain, audit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from catalog.errors import Denied, InvalidInput
from catalog.permission import ObjectKind
from secadmin.cli.completion import permissions
from secadmin.cli.context import cli_of
from secadmin.cli.words import parse_grant

audit = typer.Typer(invoke_without_command=True, help="The audit log.")


def catalog(
    ctx: typer.Context,
    kind: Annotated[
        ObjectKind | None, typer.Option("--kind", help="Show only this kind of object.")
    ] = None,
) -> None:
    """List the objects that you may view."""
    cli = cli_of(ctx)
    with cli.api() as api:
        rows = api.get("catalog", kind=kind.value if kind else None)
    cli.screen.rows(rows, "there is nothing that you may view")


def health(ctx: typer.Context) -> None:
    """Say whether the platform is well. An administrator also sees the problems."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer: dict[str, Any] = api.get("health")
        try:
            answer["problems"] = api.get("problems")
        except Denied:
            cli.screen.note("only users with CHANGE SYSTEM see what is not well")
    if cli.screen.answered(answer):
        return
    cli.screen.line(answer["status"], "green" if answer["status"] == "ok" else "red")
    if problems := answer.get("problems"):
        cli.screen.rows(problems, "")


def explain(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER")],
    words: Annotated[
        list[str], typer.Argument(metavar="PERMISSION KIND NAME", autocompletion=permissions)
    ],
) -> None:
    """Explain why a user may do something or may not.

    Example: secadmin explain ann READ TUPLE on stream london

    Example: secadmin explain ann ADD QUERY on system
    """
    cli = cli_of(ctx)
    asked = parse_grant(words)
    if len(asked.permissions) > 1:
        raise InvalidInput("name one permission; there is one answer for each")
    (wanted,), kind, name = asked.permissions, asked.kind, asked.name
    with cli.api() as api:
        query = {"user": user, "permission": wanted.value, "kind": kind.value, "name": name}
        answer: dict[str, Any] = api.get("explain", **query)
    if cli.screen.answered(answer):
        return
    style = "green" if answer["allowed"] else "red"
    verdict = "allowed" if answer["allowed"] else "not allowed"
    on = kind.value if kind is ObjectKind.SYSTEM else f"{kind} {name}"
    cli.screen.line(f"{verdict}: {wanted} on {on} for {user}", style)
    for reason in answer["reasons"]:
        mark = "+" if reason["allowed"] else "-"
        cli.screen.line(f"  {mark} {reason['reason']}")


@audit.callback()
def show(
    ctx: typer.Context,
    after: Annotated[
        int | None, typer.Option("--after", min=0, help="Show only entries with a higher number.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, max=1000)] = None,
) -> None:
    """Show the audit log, oldest entry first. `audit verify` checks that it is whole."""
    if ctx.invoked_subcommand is not None:
        return
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.rows(api.get("audit", after=after, limit=limit), "no such entries")


@audit.command()
def head(ctx: typer.Context) -> None:
    """Print the head, NUMBER:HASH. Keep it elsewhere for `audit verify --head`."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("audit", "head")
    if not cli.screen.answered(answer):
        cli.screen.line(answer["head"])


@audit.command()
def verify(
    ctx: typer.Context,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="NUMBER:HASH", help="A head that you kept elsewhere."),
    ] = None,
) -> None:
    """Check that no entry was changed or left out. If one was, the exit code is 1.

    The entries are compared with the heads that are kept outside the database.
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.get("audit", "verify", head=head)
    if cli.screen.json:
        cli.screen.answer(answer)
    elif answer["intact"]:
        cli.screen.line(f"intact: {answer['entries']} entries", "green")
    else:
        number, what = answer["first_problem"]
        said = f"NOT intact: entry {number}: {what} ({answer['entries']} entries)"
        cli.screen.line(said, "bold red")
    for anchor in answer["anchors"]:
        cli.screen.line(f"  {anchor['place']}: {_compared(anchor, answer['entries'])}")
    if head is not None and answer["intact"]:
        cli.screen.line("  the given head: it is part of the log")
    if not answer["intact"]:
        raise typer.Exit(1)


def _compared(anchor: dict[str, Any], entries: int) -> str:
    """Say up to which entry an anchor was compared, and what is wrong with it."""
    newest = anchor["newest"]
    found = (
        f"compared up to {min(newest, entries)} ({anchor['heads']} heads)"
        if newest is not None
        else "NOT compared, it holds no head"
    )
    notes = [found]
    if anchor["problem"]:
        notes.append(anchor["problem"])
    if anchor["unreadable"]:
        notes.append(f"{anchor['unreadable']} lines in it are not this platform's")
    return "; ".join(notes)
