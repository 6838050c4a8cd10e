"""The command line `secadmin`: its global options and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catalog.permission import ObjectKind
from secadmin.cli.commands import (
    accesses,
    conflict_classes,
    consume,
    executions,
    grants,
    inspection,
    outputs,
    policies,
    produce,
    queries,
    roles,
    schemas,
    session,
    streams,
    users,
    walls,
)
from secadmin.cli.commands.listing import add_list
from secadmin.cli.context import Cli, Seams
from secadmin.cli.profile import environment_profile
from secadmin.cli.root_group import RootGroup
from secadmin.cli.screen import Screen

app = typer.Typer(
    name="secadmin",
    cls=RootGroup,
    no_args_is_help=True,
    # The lines of a paragraph are joined, and broken where the terminal ends.
    rich_markup_mode="markdown",
    # A trace with local variables would show passwords and tokens.
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_PANELS = {
    "Session": (
        session.login,
        session.logout,
        session.whoami,
        session.passwd,
        session.deactivate,
    ),
    "Rights": (grants.grant, grants.revoke, grants.grants, inspection.explain),
    "Data": (
        produce.produce,
        consume.consume,
        accesses.subscribe,
        accesses.backfill,
        accesses.quarantine,
        accesses.sender,
        accesses.accesses,
        accesses.unsubscribe,
    ),
    "Objects": (inspection.catalog, inspection.health),
}
_GROUPS = {
    "user": (users.app, "Rights"),
    "role": (roles.app, "Rights"),
    "schema": (schemas.app, "Objects"),
    "stream": (streams.app, "Objects"),
    "query": (queries.app, "Objects"),
    "output": (outputs.app, "Objects"),
    "execution": (executions.app, "Objects"),
    "policy": (policies.app, "Rights"),
    "wall": (walls.app, "Rights"),
    "conflict-class": (conflict_classes.app, "Objects"),
    "audit": (inspection.audit, "Rights"),
}
for _kind in (
    *(ObjectKind.SCHEMA, ObjectKind.STREAM, ObjectKind.OUTPUT),
    ObjectKind.CONFLICT_CLASS,
):
    add_list(_GROUPS[_kind.value][0], _kind)
for _panel, _commands in _PANELS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)
for _name, (_group, _panel) in _GROUPS.items():
    app.add_typer(_group, name=_name, rich_help_panel=_panel)


@app.callback()
def root(
    ctx: typer.Context,
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", envvar="SECADMIN_URL", help="https://HOST:PORT"),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option("--ca", metavar="FILE", envvar="SECADMIN_CA", help="CA of the server, PEM."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="JSON, for scripts.")] = False,
) -> None:
    """Secure streams: streaming with row-level security.

    Server and CA are remembered from the last login. --server, --ca and --json may be anywhere.
    SECADMIN_CONFIG names another folder for the session, for several users at once.
    """
    seams = ctx.find_object(Seams) or Seams()
    ctx.obj = Cli(Screen(json_output), environment_profile(), server, ca, seams)
