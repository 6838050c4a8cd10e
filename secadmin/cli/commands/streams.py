"""stream add, show, readers, stop-readers, rate, remove; and which senders are independent."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from catalog.errors import InvalidInput
from catalog.permission import ObjectKind
from catalog.record_format import TimeFormat, UnknownFields
from catalog.time_source import TimeSource
from catalog.topic_sharing import Senders
from secadmin.cli.commands.executions import ids_of
from secadmin.cli.completion import names_of
from secadmin.cli.context import cli_of
from secadmin.cli.durations import byte_count, milliseconds
from secadmin.cli.options import StreamName, UserName
from secadmin.cli.words import pair_of

app = typer.Typer(no_args_is_help=True, help="Streams, to which senders write tuples.")
_DECLARED = "Declared aggregate"


@app.command()
def add(  # noqa: PLR0913, PLR0917  # one parameter for each option
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    schema: Annotated[str, typer.Option(autocompletion=names_of(ObjectKind.SCHEMA))],
    event_time: Annotated[
        str | None, typer.Option(help="The timestamp attribute for windows and joins.")
    ] = None,
    lateness: Annotated[
        str | None,
        typer.Option(help="How far a tuple may lag behind the stream's time, such as 5s."),
    ] = None,
    time: Annotated[
        TimeSource | None,
        typer.Option(
            help="What moves time: when the broker takes records, or their event times "
            "(for files of old records). [default: broker]"
        ),
    ] = None,
    max_ahead: Annotated[
        str | None, typer.Option(help="How far event time may be ahead of the clock, such as 1h.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(help="The largest record, such as 64KiB.")
    ] = None,
    partitions: Annotated[int | None, typer.Option(min=1)] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Everybody may see the stream's tuples.")
    ] = False,
    senders: Annotated[
        Senders | None,
        typer.Option(help="A topic for each sender, or one for all. [default: own]"),
    ] = None,
    time_format: Annotated[
        TimeFormat | None, typer.Option(help="How times are written in records. [default: iso]")
    ] = None,
    unknown_fields: Annotated[
        UnknownFields | None,
        typer.Option(help="What to do with unknown fields. [default: quarantine]"),
    ] = None,
    label_rule: Annotated[
        str | None,
        typer.Option(
            help="Which roles may see a tuple: SENDER, HEADER name, or an SQL expression."
        ),
    ] = None,
    company: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=RULE",
            help="Which company of a conflict class a tuple is of: SENDER, or an SQL expression.",
        ),
    ] = None,
    floors: Annotated[
        bool | None,
        typer.Option(
            "--floors/--no-floors",
            help="What a user sends can be read by nobody who may not read as much. Only with "
            "CHANGE SYSTEM a stream has no floors. [default: floors without CHANGE SYSTEM]",
        ),
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many tuples a second senders will send, as far as you know. It counts for "
            "how many classes an output over the stream may have.",
        ),
    ] = None,
    declare_window: Annotated[
        str | None, typer.Option(rich_help_panel=_DECLARED, help="Tumbling window, such as 1m.")
    ] = None,
    declare_key: Annotated[
        list[str] | None, typer.Option(rich_help_panel=_DECLARED, help="Can be repeated.")
    ] = None,
    declare_function: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_DECLARED, help="count, sum, avg, stddev; repeatable."),
    ] = None,
    declare_minimum: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_DECLARED,
            min=2,
            help="The smallest number of independent senders in a group.",
        ),
    ] = None,
) -> None:
    """Add a stream.

    READ AGGREGATE reads the stream only through its declared aggregate.

    Example: secadmin stream add in1 --schema trades --event-time ts --lateness 5s
    """
    body = {
        "name": name,
        "schema": schema,
        "event_time": event_time,
        "time": time,
        "lateness_ms": milliseconds(lateness) if lateness else None,
        "max_ahead_ms": milliseconds(max_ahead) if max_ahead else None,
        "max_bytes": byte_count(max_bytes) if max_bytes else None,
        "partitions": partitions,
        "public": public,
        "senders": senders,
        "time_format": time_format,
        "unknown_fields": unknown_fields,
        "label_rule": label_rule,
        "company_rules": dict(map(pair_of, company)) if company else None,
        "floored": floors,
        "rate": rate,
        "declared_aggregate": _declared(
            declare_window, declare_key, declare_function, declare_minimum
        ),
    }
    cli = cli_of(ctx)
    with cli.api() as api:
        given = {key: value for key, value in body.items() if value is not None}
        answer = api.post("streams", body=given)
    if cli.screen.answered(answer):
        return
    cli.screen.line(f"added the stream {name}")


def _declared(
    window: str | None, keys: list[str] | None, functions: list[str] | None, minimum: int | None
) -> dict[str, Any] | None:
    if window is None and not keys and not functions and minimum is None:
        return None
    if window is None or not functions or minimum is None:
        raise InvalidInput(
            "a declared aggregate needs --declare-window, --declare-function and --declare-minimum"
        )
    return {
        "window_ms": milliseconds(window),
        "keys": keys or [],
        "functions": functions,
        "minimum": minimum,
    }


@app.command()
def show(ctx: typer.Context, name: StreamName) -> None:
    """Show a stream's schema and settings, and its senders if you may change its permissions."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer: dict[str, Any] = api.get("streams", name)
    if cli.screen.answered(answer):
        return
    attributes, senders = answer.pop("attributes", []), answer.pop("who_sends", None)
    cli.screen.fields(answer)
    cli.screen.line("")
    cli.screen.rows(attributes, "no attributes")
    if senders is not None:
        cli.screen.line("")
        cli.screen.rows(senders, "nobody may send")


@app.command()
def readers(ctx: typer.Context, name: StreamName) -> None:
    """List the executions of all users that read a stream, only their ids."""
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.rows(api.get("streams", name, "readers"), f"nothing reads {name}")


@app.command("stop-readers")
def stop_readers(ctx: typer.Context, name: StreamName) -> None:
    """Stop all queries that read a stream. Their owners see the reason."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("streams", name, "readers", "stop")
    if not cli.screen.answered(answer):
        cli.screen.line(f"stopped {ids_of(answer['stopped'])}")


@app.command("mark-independent")
def mark_independent(ctx: typer.Context, name: StreamName, user: UserName) -> None:
    """Let a sender count for the minimum of the stream's declared aggregate, and of policies.

    Mark only senders who do not tell each other, or anybody else, what they send.
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        api.post("streams", name, "independent-senders", body={"user": user})
    cli.screen.line(f"{user} counts as an independent sender of {name}")


@app.command("unmark-independent")
def unmark_independent(ctx: typer.Context, name: StreamName, user: UserName) -> None:
    """Let a sender not count any more, also in groups that are not complete yet."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("streams", name, "independent-senders", user)
    cli.screen.line(f"{user} does not count as an independent sender of {name} any more")


@app.command()
def floors(ctx: typer.Context, name: StreamName) -> None:
    """Show what the labels of all that a sender sends have in addition, for each sender."""
    cli = cli_of(ctx)
    with cli.api() as api:
        cli.screen.rows(api.get("streams", name, "floors"), "no sender has a floor")


@app.command("lower-floor")
def lower_floor(ctx: typer.Context, name: StreamName, user: UserName) -> None:
    """Take a sender's floor away. What it sends is declassified, which the audit log has.

    Its floor in this stream does not rise any more, unless it loses SEND and gets it again.
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("streams", name, "floors", user)
    cli.screen.line(f"{user} has no floor in {name} any more")


@app.command()
def rate(
    ctx: typer.Context,
    name: StreamName,
    rate: Annotated[int | None, typer.Argument(metavar="[RATE]", min=1)] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Declare no rate any more.")] = False,
) -> None:
    """Declare how many tuples a second senders will send, as far as you know.

    The higher it is, the fewer classes an output with semantics view, isolated or exact over the
    stream may have. It slows no sender, and no subscription ends for it.

    Example: secadmin stream rate in1 5000
    """
    if (rate is None) != remove:
        raise InvalidInput("give either a rate, in tuples a second, or --remove")
    cli = cli_of(ctx)
    with cli.api() as api:
        api.put("streams", name, "rate", body={"rate": rate})
    if remove:
        cli.screen.line(f"{name} has no declared rate any more")
    else:
        cli.screen.line(f"the declared rate of {name} is {rate} tuples a second")


@app.command()
def remove(ctx: typer.Context, name: StreamName) -> None:
    """Remove a stream that no query reads any more."""
    cli = cli_of(ctx)
    with cli.api() as api:
        api.delete("streams", name)
    cli.screen.line(f"removed the stream {name}")
