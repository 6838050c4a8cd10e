"""user add, list, lock, unlock, reset-password, assign, unassign."""

from __future__ import annotations

from typing import Annotated

import typer

from secadmin.cli.context import cli_of
from secadmin.cli.options import PasswordStdin, UserName
from secadmin.cli.passwords import password_line

app = typer.Typer(no_args_is_help=True, help="Users and the roles that they may activate.")
RoleName = Annotated[str, typer.Argument(metavar="ROLE")]


@app.command()
def add(ctx: typer.Context, user: UserName, password_stdin: PasswordStdin = False) -> None:
    """Add a user, with a one-time password that is shown once."""
    cli = cli_of(ctx)
    password = {"password": password_line()} if password_stdin else {}
    with cli.api() as api:
        answer = api.post("users", body={"name": user, **password})
    if cli.screen.answered(answer):
        return
    made = answer.get("password")
    cli.screen.line(f"added {user}" + (f"; one-time password: {made}" if made else ""))


@app.command("list")
def list_users(ctx: typer.Context) -> None:
    """List the users with their roles."""
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.rows(api.get("users"), "no users")


@app.command()
def lock(ctx: typer.Context, user: UserName) -> None:
    """Lock a user. Its sessions and accesses end at once, and its queries stop."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("users", user, "lock")
    cli.screen.line(f"{user} is locked")


@app.command()
def unlock(ctx: typer.Context, user: UserName) -> None:
    """Let a locked user log in again."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("users", user, "unlock")
    cli.screen.line(f"{user} can log in again")


@app.command("reset-password")
def reset_password(ctx: typer.Context, user: UserName) -> None:
    """Give a user a new one-time password, shown once. The user's sessions end at once."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("users", user, "password-reset")
    if not cli.screen.answered(answer):
        cli.screen.line(f"one-time password of {user}: {answer['password']}")


@app.command()
def assign(ctx: typer.Context, user: UserName, role: RoleName) -> None:
    """Let a user activate a role, from the next login on."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("users", user, "roles", body={"role": role})
    if cli.screen.answered(answer):
        return
    cli.screen.line(f"{user} has the role {role}")
    cli.screen.warnings(answer)


@app.command()
def unassign(ctx: typer.Context, user: UserName, role: RoleName) -> None:
    """Take a role from a user. Accesses that were made with it end at once."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("users", user, "roles", role)
    cli.screen.line(f"{user} does not have the role {role} any more")
