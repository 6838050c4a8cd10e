"""subscribe, quarantine, sender, accesses, unsubscribe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catalog.errors import NotFound
from secadmin.cli.access import Access
from secadmin.cli.access_folder import (
    is_access_folder,
    principal_in,
    remove_access_files,
    write_access_folder,
)
from secadmin.cli.context import Cli, cli_of
from secadmin.cli.ending import end_own
from secadmin.cli.options import Keep, NewFolder, OutputName, StreamName
from secadmin.cli.private_files import new_private_folder


def subscribe(
    ctx: typer.Context, output: OutputName, folder: NewFolder, keep: Keep = False
) -> None:
    """Subscribe to an output: write the files with which any Kafka client can read it."""
    _give(cli_of(ctx), ("outputs", output, "subscriptions"), folder, keep)


def quarantine(
    ctx: typer.Context, stream: StreamName, folder: NewFolder, keep: Keep = False
) -> None:
    """Read what did not fit a stream: write the files for any Kafka client."""
    _give(cli_of(ctx), ("streams", stream, "quarantine"), folder, keep)


def sender(ctx: typer.Context, stream: StreamName, folder: NewFolder, keep: Keep = False) -> None:
    """Send to a stream: write the files with which any Kafka client can write to it."""
    _give(cli_of(ctx), ("streams", stream, "senders"), folder, keep)


def _give(cli: Cli, path: tuple[str, str, str], folder: Path, keep: bool) -> None:
    cli.session()
    # Before the call: the secret is told once, so there must be a place for it.
    new_private_folder(folder)
    try:
        access = _written(cli, path, folder, keep)
    except BaseException:
        remove_access_files(folder)
        raise
    shown = {
        "principal": access.principal,
        "kind": access.kind,
        "name": access.name,
        "subscription": access.subscription,
        "dir": str(folder),
    }
    if cli.screen.answered(shown):
        return
    cli.screen.line(f"{access.principal}: {access.subscription}")
    how = "secadmin produce" if access.writes else f"secadmin consume {folder}"
    cli.screen.line(f"files in {folder}; {how}, or any Kafka client (see README.txt there)")


def _written(cli: Cli, path: tuple[str, str, str], folder: Path, keep: bool) -> Access:
    """A new access in the folder. One whose secret could not be written is ended again."""
    with cli.api() as api:
        answer = api.post(*path, body={"keep": keep})
        try:
            access = Access.of_answer(path[1], answer)
            write_access_folder(folder, access)
        except BaseException:
            end_own(api, answer, cli.screen.note)
            raise
    return access


def accesses(ctx: typer.Context) -> None:
    """List your accesses: subscriptions, quarantines, senders."""
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.rows(api.get("accesses"), "you have no accesses")


def unsubscribe(
    ctx: typer.Context,
    access: Annotated[str, typer.Argument(metavar="PRINCIPAL|DIR")],
) -> None:
    """End an access, named by its principal or by the folder of its files, which are deleted."""
    cli = cli_of(ctx)
    folder = Path(access)
    is_folder = is_access_folder(folder)
    principal = principal_in(folder) if is_folder or "/" in access else access
    said = f"{principal} has ended"
    with cli.api() as api:
        try:
            api.delete("accesses", principal)
        except NotFound:
            # The files of one that has ended are secret all the same.
            if not is_folder:
                raise
            said = f"{principal} had ended already, or is another user's; its files are deleted"
    if is_folder:
        remove_access_files(folder)
    cli.screen.line(said)
