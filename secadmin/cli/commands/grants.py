"""grant, revoke, grants."""

from __future__ import annotations

from typing import Annotated

import typer

from catalog.permission import ObjectKind
from secadmin.cli.completion import permissions
from secadmin.cli.context import Cli, cli_of
from secadmin.cli.words import parse_grant

RoleName = Annotated[str, typer.Argument(metavar="ROLE")]
Words = Annotated[
    list[str],
    typer.Argument(metavar="PERMISSION... KIND NAME", autocompletion=permissions),
]


def grant(ctx: typer.Context, role: RoleName, words: Words) -> None:
    """Grant permissions on an object to a role.

    Example: secadmin grant CUSTOMER1 READ TUPLE, VIEW OBJECT on stream in1

    Example: secadmin grant DEVELOPER "ADD QUERY" system
    """
    _change(cli_of(ctx), "grants", role, words)


def revoke(ctx: typer.Context, role: RoleName, words: Words) -> None:
    """Revoke permissions on an object from a role.

    After the command, no later record arrives that they allowed.

    Example: secadmin revoke CUSTOMER1 READ_TUPLE stream in1
    """
    _change(cli_of(ctx), "revocations", role, words)


def _change(cli: Cli, path: str, role: str, words: list[str]) -> None:
    wanted = parse_grant(words)
    body = {
        "role": role,
        "permissions": [permission.value for permission in wanted.permissions],
        "kind": wanted.kind.value,
        "name": wanted.name,
    }
    with cli.api() as api:
        answer = api.post(path, body=body)
    if cli.screen.answered(answer):
        return
    changed = ", ".join(answer["changed"])
    on = wanted.kind.value if wanted.kind is ObjectKind.SYSTEM else f"{wanted.kind} {wanted.name}"
    if changed:
        verb, joint = ("granted", "to") if path == "grants" else ("revoked", "from")
        cli.screen.line(f"{verb} {changed} on {on} {joint} {role}")
    else:
        asked = ", ".join(wanted.permissions)
        held = f"holds {asked} already" if path == "grants" else f"did not hold {asked}"
        cli.screen.line(f"nothing has changed: {role} {held} on {on}")
    cli.screen.warnings(answer)


def grants(
    ctx: typer.Context,
    kind: ObjectKind,
    name: Annotated[str, typer.Argument(metavar="[NAME]", show_default=False)] = "system",
) -> None:
    """List the permissions of roles on an object. The system needs no name."""
    cli = cli_of(ctx)
    with cli.api() as api:
        rows = api.get("grants", kind=kind.value, name=name)
    cli.screen.rows(rows, f"nothing is granted on {kind} {name}")
