"""produce: send a file's tuples to a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from secadmin.cli.api import Api
from secadmin.cli.context import Cli, cli_of
from secadmin.cli.ending import ended_after
from secadmin.cli.kafka.access import Access
from secadmin.cli.kafka.client_errors import open_client
from secadmin.cli.kafka.client_settings import librdkafka_settings
from secadmin.cli.kafka.sending import Sender
from secadmin.cli.options import StreamName
from secadmin.cli.screen import Screen
from secadmin.cli.tuple_file import FileFormat, format_of, read_tuples
from secadmin.cli.tuple_rules import TupleRules
from secadmin.cli.upload import Outcome, Upload
from secadmin.cli.words import pair_of

_INTERRUPTED = 130
# Waiting some milliseconds makes batches, and batches make a high rate possible.
_LINGER_MS = "20"


def produce(
    ctx: typer.Context,
    stream: StreamName,
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False)],
    file_format: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Default: by the file name, .csv, .json, .jsonl or .ndjson."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A header of each record, such as roles='doctor & icu'. May be given again.",
        ),
    ] = None,
) -> None:
    """Send a file to a stream: CSV with a header, or one JSON object on each line.

    CSV cells become the types of the stream's attributes. An empty cell is an absent attribute.
    A line that is no tuple of the stream is not sent, and is reported with the reason. The
    command waits until the brokers have acknowledged all. If a record was not sent, the exit code
    is 1.
    """
    cli = cli_of(ctx)
    headers = dict(pair_of(text, "NAME=VALUE", "roles=doctor") for text in header or ())
    written = file_format or format_of(file)
    with cli.api() as api, file.open("rb") as binary:
        rules = TupleRules.of_answer(api.get("streams", stream))
        records = read_tuples(binary, written, rules)
        with _sender_access(cli, api, stream) as access:
            sender = _sender(cli, access, headers)
            outcome = Upload(cli.screen, sender, file.stat().st_size).run(records)
    _report(cli.screen, stream, outcome)


@contextmanager
def _sender_access(cli: Cli, api: Api, stream: str) -> Iterator[Access]:
    """An access for this run alone."""
    answer = api.post("streams", stream, "senders")
    with ended_after(api, answer, cli.screen.note):
        yield Access.of_answer(stream, answer)


def _sender(cli: Cli, access: Access, headers: Mapping[str, str]) -> Sender:
    sender = Sender(access.topic or "", headers)
    settings = {
        **librdkafka_settings(access),
        "ssl.ca.pem": access.ca_pem,
        "linger.ms": _LINGER_MS,
        "error_cb": sender.on_error,
    }
    sender.use(open_client(cli.seams.producer, settings))
    return sender


def _report(screen: Screen, stream: str, outcome: Outcome) -> None:
    """Say what was sent. End the command with an exit code if not all was sent."""
    acked, seconds = outcome.tally.acked, outcome.seconds
    if screen.json:
        counts = {"sent": outcome.tally.sent, "acked": acked, "failed": outcome.lost}
        screen.answer({**counts, "rejected": outcome.mistakes, "seconds": round(seconds, 3)})
    else:
        screen.line(
            f"{acked:,} acknowledged, {outcome.lost:,} failed, {outcome.mistakes:,} not usable "
            f"({seconds:.1f} s, {acked / seconds:,.0f}/s)"
        )
        if acked:
            screen.note(
                "ingest checks the records next, and refuses late ones too: "
                f"`secadmin stream show {stream}` counts them"
            )
    for reason, count in outcome.tally.reasons.items():
        screen.note(f"{count:,} times: {reason}")
    if outcome.error is not None:
        raise outcome.error
    if outcome.interrupted:
        screen.note("stopped before the end of the file")
        raise typer.Exit(_INTERRUPTED)
    if outcome.lost or outcome.mistakes:
        raise typer.Exit(1)
