"""subscribe, backfill, quarantine, sender, accesses, unsubscribe."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from catalog.errors import InvalidInput, NotFound
from secadmin.cli.context import Cli, cli_of
from secadmin.cli.durations import milliseconds, past_time
from secadmin.cli.ending import end_own
from secadmin.cli.feeding import Feeding
from secadmin.cli.kafka.access import Access
from secadmin.cli.kafka.access_folder import (
    is_access_folder,
    principal_in,
    remove_access_files,
    write_access_folder,
)
from secadmin.cli.options import Keep, NewFolder, OutputName, StreamName
from secadmin.cli.private_files import new_private_folder
from secadmin.cli.trust import server_url
from secadmin.cli.words import pair_of

Since = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="How long ago, such as 2h, or 2026-01-31T10:00:00Z; `all` is the earliest possible.",
    ),
]
_ALL = "all"


def subscribe(  # noqa: PLR0913, PLR0917  # one parameter for each option
    ctx: typer.Context,
    output: OutputName,
    folder: NewFolder,
    keep: Keep = False,
    wait: Annotated[
        str, typer.Option(envvar="SECADMIN_WAIT", help="The longest wait, such as 2m.")
    ] = "2m",
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait until the subscription is fed.")
    ] = False,
    company: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=COMPANY",
            help="Choose the company that you read. It closes the others of its class, for good.",
        ),
    ] = None,
    backfill_since: Annotated[
        str | None,
        typer.Option(
            "--backfill",
            metavar="TIME",
            help="Also get results of what came since then, once it is fed: 2h, a date, or all.",
        ),
    ] = None,
) -> None:
    """Subscribe to an output: write the files with which any Kafka client can read it.

    The command waits until the subscription is fed. Earlier results may not be delivered, unless
    you ask for a backfill.
    """
    cli = cli_of(ctx)
    since = _since(backfill_since or _ALL)
    if backfill_since is not None and no_wait:
        raise InvalidInput("a backfill begins when the subscription is fed: leave out --no-wait")
    at_most_s = 0.0 if no_wait else milliseconds(wait) / 1000
    body: dict[str, Any] = {"keep": keep}
    if company:
        body["choices"] = dict(map(pair_of, company))
    access = _give(cli, ("outputs", output, "subscriptions"), folder, body)
    fed = None if no_wait else Feeding(cli, access.principal).wait(at_most_s)
    _tell(cli, access, folder, fed)
    if backfill_since is not None:
        _begin_backfill(cli, access.principal, since)


def backfill(
    ctx: typer.Context,
    access: Annotated[str, typer.Argument(metavar="HANDLE|PRINCIPAL|DIR")],
    since: Since = _ALL,
) -> None:
    """Get results of what came before your subscription, in one more topic of it.

    They are what you may see of them now. `secadmin accesses` shows when all of them are there.
    """
    cli = cli_of(ctx)
    _begin_backfill(cli, _principal(cli, access), _since(since))


_CLOSED_QUARANTINE = (
    "you may read nothing there now: that needs the roles and the companies that the stream's "
    "records name, and roles without a policy on the stream"
)


def _since(text: str) -> str | None:
    return None if text == _ALL else past_time(text, datetime.now(UTC)).isoformat()


def _begin_backfill(cli: Cli, principal: str, since: str | None) -> None:
    with cli.api() as api:
        answer = api.post("accesses", principal, "backfills", body={"since": since})
    if not cli.screen.answered(answer):
        cli.screen.line(f"a backfill runs; its results come into {answer['topic']}")


def quarantine(
    ctx: typer.Context, stream: StreamName, folder: NewFolder, keep: Keep = False
) -> None:
    """Read a stream's quarantine: write the files with which any Kafka client can read it."""
    cli = cli_of(ctx)
    access = _give(cli, ("streams", stream, "quarantine"), folder, {"keep": keep})
    _tell(cli, access, folder)
    with cli.api() as api:
        if not api.get("accesses", access.principal)["active"]:
            cli.screen.note(_CLOSED_QUARANTINE)


def sender(ctx: typer.Context, stream: StreamName, folder: NewFolder, keep: Keep = False) -> None:
    """Send to a stream: write the files with which any Kafka client can write to it."""
    cli = cli_of(ctx)
    _tell(cli, _give(cli, ("streams", stream, "senders"), folder, {"keep": keep}), folder)


def _give(cli: Cli, path: tuple[str, str, str], folder: Path, body: Mapping[str, Any]) -> Access:
    cli.session()
    # Before the call: the secret is shown only once, so its folder must exist.
    new_private_folder(folder)
    try:
        return _written(cli, path, folder, body)
    except BaseException:
        remove_access_files(folder)
        raise


def _tell(cli: Cli, access: Access, folder: Path, fed: bool | None = None) -> None:
    """Say what the user got. `fed` is None if the command did not wait."""
    shown = {
        "handle": access.handle,
        "principal": access.principal,
        "kind": access.kind,
        "name": access.name,
        "subscription": access.subscription,
        "dir": str(folder),
        **({} if fed is None else {"fed": fed}),
    }
    if cli.screen.answered(shown):
        return
    cli.screen.line(f"{access.principal}: {access.subscription}")
    how = "secadmin produce" if access.writes else f"secadmin consume {folder}"
    cli.screen.line(f"files in {folder}; {how}, or any Kafka client (see README.txt there)")


def _written(cli: Cli, path: tuple[str, str, str], folder: Path, body: Mapping[str, Any]) -> Access:
    """Make an access and write its files. End it again if its secret cannot be written."""
    with cli.api() as api:
        answer = api.post(*path, body=dict(body))
        try:
            access = Access.of_answer(path[1], answer)
            write_access_folder(folder, access)
        except BaseException:
            end_own(api, answer, cli.screen.note)
            raise
    return access


def accesses(
    ctx: typer.Context,
    handle: Annotated[
        str | None, typer.Argument(metavar="[HANDLE|PRINCIPAL|DIR]", help="Show this one alone.")
    ] = None,
) -> None:
    """List your accesses: subscriptions, quarantines, senders. Or show what one may do now."""
    cli = cli_of(ctx)
    with cli.api() as api:
        if handle is None:
            rows = api.get("accesses")
            if not cli.screen.json:
                rows = [_with_states(row) for row in rows]
            cli.screen.rows(rows, "you have no accesses")
            return
        shown = api.get("accesses", _principal(cli, handle))
    if not cli.screen.answered(shown):
        cli.screen.fields(_with_states(shown))


def _with_states(access: Mapping[str, Any]) -> dict[str, Any]:
    """An access as people read it: each of its backfills is a state and a time."""
    states = [
        f"{each['state']}, results since {each['since']}" for each in access.get("backfills", ())
    ]
    return {**access, "backfills": states}


def unsubscribe(
    ctx: typer.Context,
    access: Annotated[str, typer.Argument(metavar="HANDLE|PRINCIPAL|DIR")],
) -> None:
    """End an access. Name its handle, its principal, or the folder of its files.

    The files in the folder are then deleted.
    """
    cli = cli_of(ctx)
    folder = Path(access)
    is_folder = is_access_folder(folder)
    principal = _principal(cli, access)
    said = f"{principal} has ended"
    with cli.api() as api:
        try:
            api.delete("accesses", principal)
        except NotFound:
            # The files are secret even if the access has ended.
            if not is_folder:
                raise
            said = f"{principal} had ended already, or is another user's; its files are deleted"
    if is_folder:
        remove_access_files(folder)
    cli.screen.line(said)


def _principal(cli: Cli, named: str) -> str:
    """The principal of an access: it, a handle, or the folder of its files. Raises InvalidInput."""
    if "://" in named:
        base, _, principal = named.rpartition("/accesses/")
        server = cli.session().server
        if not base or server_url(base) != server_url(server):
            raise InvalidInput(f"{named} is no handle of an access at {server}")
        return principal
    folder = Path(named)
    return principal_in(folder) if is_access_folder(folder) or "/" in named else named
