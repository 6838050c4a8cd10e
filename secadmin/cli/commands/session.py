"""login, logout, whoami, passwd, deactivate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from catalog.errors import NotAuthenticated, PlatformError
from secadmin.cli.api import Api
from secadmin.cli.context import Cli, cli_of
from secadmin.cli.options import PasswordStdin
from secadmin.cli.passwords import password_line, prompt_password
from secadmin.cli.profile import SavedSession
from secadmin.cli.words import pair_of


def login(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER")],
    role: Annotated[
        list[str] | None,
        typer.Option("--role", "-r", help="Activate only this role. The option may be repeated."),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            "--level",
            metavar="CLASS=COMPANY",
            help="Run the session at this level in a conflict class: a company, T or _. The option "
            "may be repeated. In other classes the session has your level.",
        ),
    ] = None,
    password_stdin: PasswordStdin = False,
) -> None:
    """Log in, and keep the session for the next commands.

    If no role is named, all of the user's roles are activated. Server and CA are kept too.
    """
    cli = cli_of(ctx)
    connection = cli.connection()
    ca = cli.ca_file()
    password = password_line() if password_stdin else prompt_password(f"Password of {user}")
    body: dict[str, Any] = {"user": user, "password": password}
    if role:
        body["roles"] = role
    if level:
        body["levels"] = dict(map(pair_of, level))
    with cli.open_api() as api:
        answer = api.post("login", body=body)
    _end_former(cli)
    session = SavedSession(str(connection.url).rstrip("/"), answer["user"], answer["token"])
    cli.profile.save(session, ca.read_text(encoding="utf-8") if ca else None)
    shown = {name: value for name, value in answer.items() if name != "token"}
    if cli.screen.answered(shown):
        return
    roles = ", ".join(answer["roles"]) or "no roles"
    level_shown = f" at {', '.join(answer['level'])}" if answer["level"] else ""
    cli.screen.line(
        f"logged in as {answer['user']} ({roles}){level_shown} until {answer['expires_at']}"
    )
    if answer["must_change_password"]:
        cli.screen.note("this password works only once; choose your own now: secadmin passwd")


def _end_former(cli: Cli) -> None:
    """End the former session now: without its token nobody could end it or its accesses."""
    try:
        former = cli.profile.load()
        if former is not None:
            with cli.api() as api:
                api.post("logout")
            cli.screen.note(f"your former session as {former.user} and its accesses have ended")
    except PlatformError:
        return


def logout(ctx: typer.Context) -> None:
    """End the session and all its accesses."""
    cli = cli_of(ctx)
    with cli.api() as api:
        try:
            api.post("logout")
        except NotAuthenticated:
            cli.screen.note("the session had ended already")
    cli.profile.forget()
    cli.screen.line("logged out")


def whoami(ctx: typer.Context) -> None:
    """Show the user that is logged in, its roles, and when the session ends."""
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.fields(api.get("whoami"))


def passwd(
    ctx: typer.Context,
    password_stdin: Annotated[
        bool,
        typer.Option(
            "--password-stdin",
            help="Read the old and then the new password from standard input, one on each line.",
        ),
    ] = False,
) -> None:
    """Change your password."""
    cli = cli_of(ctx)
    cli.session()
    if password_stdin:
        old, new = password_line("old password"), password_line("new password")
    else:
        old = prompt_password("Old password")
        new = prompt_password("New password", confirm=True)
    with cli.api() as api:
        _change(api, old, new)
    cli.screen.line("password changed; your other sessions have ended")


def _change(api: Api, old: str, new: str) -> None:
    try:
        api.post("password", body={"old": old, "new": new})
    except NotAuthenticated:
        # The same status for an ended session and for a wrong old password.
        api.get("whoami")
        raise NotAuthenticated("the old password is not right") from None


def deactivate(ctx: typer.Context, role: Annotated[str, typer.Argument(metavar="ROLE")]) -> None:
    """Deactivate a role in this session. Accesses that were made with it end."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("whoami", "roles", role)
    cli.screen.line(f"{role} is not active any more")
