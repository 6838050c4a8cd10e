"""consume: print the records of a subscription."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from catalog.errors import NotFound
from catalog.permission import ObjectKind
from secadmin.cli.completion import names_of
from secadmin.cli.context import Cli, cli_of
from secadmin.cli.ending import ended_after
from secadmin.cli.kafka.access import Access
from secadmin.cli.kafka.access_folder import AccessFolder, is_access_folder, read_subscription
from secadmin.cli.kafka.bounded_close import close
from secadmin.cli.kafka.client_errors import open_client
from secadmin.cli.kafka.client_settings import librdkafka_settings
from secadmin.cli.kafka.following import OWN_SETTINGS, Follower, Limits
from secadmin.cli.kafka.login_check import LoginCheck, login_refused
from secadmin.cli.kafka.newest import NewestRows
from secadmin.cli.kafka.positions import Positions
from secadmin.cli.refused import refused_line
from secadmin.cli.safe_text import json_text
from secadmin.cli.screen import Screen

# The columns of a table after the value.
_MARKS = frozenset({"label", "reason", "partition", "offset", "timestamp", "size"})


class Begin(StrEnum):
    """Where reading begins."""

    BEGINNING = "beginning"
    END = "end"


def consume(  # noqa: PLR0913, PLR0917  # one parameter for each option
    ctx: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="DIR|OUTPUT", autocompletion=names_of(ObjectKind.OUTPUT))
    ],
    most: Annotated[
        int | None, typer.Option("--max", min=1, help="Stop after so many records.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Stop if no record came for so many seconds.")
    ] = None,
    begin: Annotated[
        Begin | None,
        typer.Option("--from", help="Where to begin. Default: where the folder's group stopped."),
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Print a table at the end.")] = False,
    newest: Annotated[
        bool,
        typer.Option(
            "--newest",
            help="Print the newest result of each key, at the end. Begins at the beginning.",
        ),
    ] = False,
    left_out: Annotated[
        bool,
        typer.Option(
            "--left-out",
            help="Print what the query left out because its state is full, and no results.",
        ),
    ] = False,
) -> None:
    """Print the records of a subscription, one on each line: the JSON value, a tab, the label.

    For a quarantine, a line has the bytes of the record, the reason, its sender:partition:offset
    and its time in in.STREAM. A byte that is no text or that a terminal would obey is printed as
    `\\xNN`, and a backslash as two.

    DIR is a folder that subscribe or quarantine wrote. For an OUTPUT, the command makes a
    subscription that ends with it. With --json, a line is an object with value, label and id.

    Upserts have their key behind the label. The value of a deletion is null.

    With --left-out, the value says of a tuple why it was left out, from which window of the query,
    and when it happened.
    """
    cli = cli_of(ctx)
    if newest and begin is None:
        begin = Begin.BEGINNING
    with (
        _opened(cli, source) as folder,
        # Closed here, even if the output breaks. The consumer then commits the printed records.
        closing(_records(cli, folder, begin, Limits(most, timeout), left_out=left_out)) as records,
    ):
        if newest:
            _newest(cli.screen, records, table=table)
            return
        if table and not cli.screen.json:
            _table(cli.screen, records)
            return
        for record in records:
            _print(cli.screen, record)


@contextmanager
def _opened(cli: Cli, source: str) -> Iterator[AccessFolder]:
    """The subscription in a folder, or a new subscription to an output for this run alone."""
    if is_access_folder(Path(source)) or "/" in source or source in {".", ".."}:
        yield read_subscription(Path(source))
        return
    with cli.api() as api:
        try:
            answer = api.post("outputs", source, "subscriptions")
        except NotFound as error:
            other = f"and {source!r} is no folder that subscribe or quarantine wrote"
            raise NotFound(f"{error.detail}, {other}") from None
        with ended_after(api, answer, cli.screen.note):
            access = Access.of_answer(source, answer)
            settings = {**librdkafka_settings(access), "ssl.ca.pem": access.ca_pem}
            prefix = access.group_prefix or ""
            yield AccessFolder(
                access.principal, access.kind, source, access.subscription, prefix, settings
            )


def _records(
    cli: Cli, folder: AccessFolder, begin: Begin | None, limits: Limits, *, left_out: bool
) -> Generator[dict[str, Any]]:
    positions = Positions(from_end=begin is Begin.END) if begin else None
    make = cli.seams.consumer
    check = LoginCheck(lambda: login_refused(make, folder.settings))
    follower = Follower(positions, check, cli.screen.note, left_out=left_out)
    # With a group of its own, the folder's group keeps its offsets.
    own = {"group.id": f"{folder.group_prefix}{secrets.token_hex(8)}", "enable.auto.commit": False}
    ours = {**OWN_SETTINGS, "error_cb": follower.on_error, **(own if begin else {})}
    consumer = open_client(make, {**folder.settings, **ours})
    try:
        yield from follower.records(consumer, folder.subscription, limits)
    finally:
        close(consumer)


def _print(screen: Screen, record: dict[str, Any]) -> None:
    if screen.json:
        screen.record(record)
        return
    # Not through Rich: a line must not be broken, and there may be very many.
    print(refused_line(record) if "reason" in record else _line(record), flush=True)


def _line(record: dict[str, Any]) -> str:
    marks = [json_text(record["label"])[1:-1]] if "label" in record else []
    marks += [json_text(record["key"])] if "key" in record else []
    return "\t".join([json_text(record["value"]), *marks])


def _newest(screen: Screen, records: Iterator[dict[str, Any]], *, table: bool) -> None:
    """The newest result of each key. One that was deleted is left out."""
    found = NewestRows()
    try:
        for record in records:
            found.take(record)
    except KeyboardInterrupt:
        screen.note("stopped")
    finally:
        rows = (dict(each) for each in found.rows())
        if table and not screen.json:
            _table(screen, rows)
        else:
            for record in rows:
                _print(screen, record)
        if found.left_out:
            screen.note(f"{found.left_out} records are left out: without a key, or too many keys")


def _table(screen: Screen, records: Iterator[dict[str, Any]]) -> None:
    rows = []
    try:
        for record in records:
            value = record["value"]
            columns = value if isinstance(value, dict) else {"value": value}
            rows.append({**columns, **{k: v for k, v in record.items() if k in _MARKS}})
    except KeyboardInterrupt:
        screen.note("stopped")
    finally:
        # They count as read, so they are shown even if the reading ends with an error.
        screen.rows(rows, "no records")
