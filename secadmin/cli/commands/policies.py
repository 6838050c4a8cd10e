"""policy add, load, list, show, remove, try, compare, sender: who sees what of a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from catalog.errors import InvalidInput
from secadmin.cli.applied import await_applied
from secadmin.cli.commands.executions import ids_of
from secadmin.cli.commands.queries import QueryTextError
from secadmin.cli.context import Cli, cli_of
from secadmin.cli.options import StreamName
from secadmin.cli.policy_words import (
    aggregated_attribute,
    difference_in_words,
    rights_in_words,
    shown_attribute,
    sight_in_words,
    smallest_window,
    tuple_window,
    written_policy,
)
from secadmin.cli.text_file import text_of

app = typer.Typer(no_args_is_help=True, help="Policies: what a role sees of a stream.")
PolicyName = Annotated[str, typer.Argument(metavar="NAME")]


@app.command()
def add(  # noqa: PLR0913, PLR0917  # one parameter for each option
    ctx: typer.Context,
    stream: StreamName,
    name: PolicyName,
    role: Annotated[str, typer.Option(help="The role that sees no more than this.")],
    rows: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="It sees tuples with this alone.")
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTRIBUTE", help="It sees this attribute, perhaps: NAME when CONDITION."
        ),
    ] = None,
    aggregate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:FUNCTION,...", help="It sees these aggregates of the attribute alone."
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="SIZE[/SLIDE]", help="The smallest window, such as 5m/1m."),
    ] = None,
    tuples: Annotated[
        str | None,
        typer.Option(metavar="SIZE[/SLIDE]", help="The smallest window of tuples, such as 10/2."),
    ] = None,
    tumbling: Annotated[bool, typer.Option("--tumbling", help="Windows must not overlap.")] = False,
    minimum: Annotated[
        int | None, typer.Option(min=1, help="The independent senders that a group needs.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of the policy of that name.")
    ] = False,
) -> None:
    """Add a policy. Without --show and --aggregate, the role sees all attributes.

    After the command, nothing more arrives that the policy does not allow.

    Example: secadmin policy add trades desk --role DESK --rows "price > 5" --show symbol
    --show "price when symbol = 'ACME'" --aggregate volume:avg,sum
    """
    rights = [
        *map(shown_attribute, show or ()),
        *map(aggregated_attribute, aggregate or ()),
    ]
    optional: dict[str, Any] = {
        "rights": rights or None,
        "window": _window(window, tuples, tumbling=tumbling),
        "minimum": minimum,
    }
    body = {"policy": name, "role": role, "rows": rows, "replace": replace}
    body |= {key: value for key, value in optional.items() if value is not None}
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("streams", stream, "policies", body=body)
    if not cli.screen.answered(answer):
        cli.screen.line(f"{_done(replace=replace)} the policy {name} of {role} on {stream}")
        _tell_begun_anew(cli, answer)


def _done(*, replace: bool) -> str:
    return "replaced" if replace else "added"


def _window(time: str | None, tuples: str | None, *, tumbling: bool) -> dict[str, Any] | None:
    if time is not None and tuples is not None:
        raise InvalidInput("a policy has --window or --tuples; no window is of both types")
    if time is None and tuples is None:
        if tumbling:
            raise InvalidInput("--tumbling goes with --window, or with --tuples")
        return None
    smallest = smallest_window(time) if time is not None else tuple_window(tuples or "")
    return {**smallest, "tumbling": tumbling}


@app.command()
def load(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    name: Annotated[
        str | None, typer.Option(help="Its name. [default: the id in the file]")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of the policy of that name.")
    ] = False,
) -> None:
    """Add a policy from an XACML 3.0 file, whose target names a role and a stream.

    Its obligations are stream-filtering, -mapping and -window-aggregation of exacml.
    """
    text = text_of(file)
    body: dict[str, Any] = {"xacml": text, "replace": replace}
    cli = cli_of(ctx)
    with cli.api() as api:
        try:
            answer = api.post("xacml-policies", body=body | ({"policy": name} if name else {}))
        except InvalidInput as error:
            raise QueryTextError(error, text) from None
    if not cli.screen.answered(answer):
        named = "the policy {policy} of {role} on {stream}".format(**answer)
        cli.screen.line(f"{_done(replace=replace)} {named}")
        _tell_begun_anew(cli, answer)


@app.command("list")
def list_policies(ctx: typer.Context, stream: StreamName) -> None:
    """List the policies on a stream."""
    cli = cli_of(ctx)
    with cli.api() as api:
        policies: list[dict[str, Any]] = api.get("streams", stream, "policies")
    if cli.screen.json:
        cli.screen.answer(policies)
        return
    rows = [
        {"policy": each["policy"], "role": each["role"], **rights_in_words(each)}
        for each in policies
    ]
    cli.screen.rows(rows, f"there is no policy on {stream}")


@app.command()
def show(ctx: typer.Context, stream: StreamName, name: PolicyName) -> None:
    """Show a policy."""
    cli = cli_of(ctx)
    with cli.api() as api:
        policy = api.get("streams", stream, "policies", name)
    if cli.screen.answered(policy):
        return
    cli.screen.fields(
        {"policy": name, "stream": stream, "role": policy["role"], **rights_in_words(policy)}
    )
    if policy["xacml"]:
        cli.screen.text("\n" + policy["xacml"].rstrip("\n"))


@app.command()
def remove(ctx: typer.Context, stream: StreamName, name: PolicyName) -> None:
    """Remove a policy. Then the role sees what its other policies show, or all."""
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.delete("streams", stream, "policies", name)
    if not cli.screen.answered(answer):
        cli.screen.line(f"removed the policy {name} on {stream}")
        _tell_begun_anew(cli, answer)


@app.command("try")
def try_record(
    ctx: typer.Context,
    stream: StreamName,
    record: Annotated[str, typer.Argument(metavar="RECORD", help="One JSON object.")],
) -> None:
    """Say who would see what of a record. Nothing is sent.

    Example: secadmin policy try trades '{"ts": "2026-01-31T12:00:00Z", "price": 7}'
    """
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("streams", stream, "policies", "try", body={"record": _object(record)})
    if cli.screen.answered(answer):
        return
    rows = [{"role": each["role"], "sees": sight_in_words(each)} for each in answer]
    cli.screen.rows(rows, f"no role holds READ TUPLE on {stream}")


@app.command()
def compare(
    ctx: typer.Context,
    stream: StreamName,
    old: Annotated[str, typer.Argument(metavar="OLD", help="A stored policy, or a file.")],
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="Another one. [default: as if OLD were removed]"),
    ] = None,
    record: Annotated[
        str | None, typer.Option(metavar="RECORD", help="One JSON object: compare by it alone.")
    ] = None,
) -> None:
    """Say what more and what less a role would see with another version of a policy.

    A version is the name of a stored policy, or a file: XACML, or what `policy show --json` gives.
    The name of a file has a dot or a slash. Nothing is changed.

    Example: secadmin policy compare trades desk stricter.xml
    """
    body: dict[str, Any] = {
        "old_version": _version(old),
        "new_version": None if new is None else _version(new),
    }
    if record is not None:
        body["record"] = _object(record)
    cli = cli_of(ctx)
    with cli.api() as api:
        answer = api.post("streams", stream, "policies", "compare", body=body)
    if cli.screen.answered(answer):
        return
    if not answer:
        cli.screen.line(f"no role of these policies holds READ TUPLE on {stream}")
        return
    rows = [difference_in_words(each) for each in answer if each["change"] != "same"]
    cli.screen.rows(rows, "both versions show the same")


def _version(text: str) -> dict[str, Any]:
    """A stored policy by its name, or what a file has."""
    if not {".", "/"} & {*text}:
        return {"stored": text}
    content = text_of(Path(text))
    if content.lstrip().startswith("<"):
        return {"xacml": content}
    return {"written": written_policy(_object(content, f"{text} is neither XACML nor"))}


def _object(text: str, told: str = "the record is not") -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"{told} a JSON object")
    return found


def _tell_begun_anew(cli: Cli, answer: dict[str, Any]) -> None:
    if answer["begun_anew"]:
        cli.screen.note(
            f"{ids_of(answer['begun_anew'])} begin anew: what their roles see has changed"
        )


@app.command()
def sender(
    ctx: typer.Context,
    stream: StreamName,
    expression: Annotated[
        str | None,
        typer.Argument(metavar="EXPRESSION", help="Roles with & and |, such as 'doctor & icu'."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove it: then what you send is refused.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait until the platform uses it.")
    ] = False,
) -> None:
    """Show, set or remove the roles that may see what you send to a stream.

    A new policy counts for what you send after the command has ended. What you sent shortly before
    may still have the old one.

    Example: secadmin policy sender vitals 'doctor | nurse'
    """
    if remove and expression is not None:
        raise InvalidInput("give an expression or --remove, not both")
    cli = cli_of(ctx)
    with cli.api() as api:
        if remove:
            api.delete("streams", stream, "sender-policy")
            cli.screen.line(f"what you send to {stream} is refused until you set a policy")
            return
        if expression is None:
            answer = api.get("streams", stream, "sender-policy")
        else:
            answer = api.put("streams", stream, "sender-policy", body={"expression": expression})
            if not no_wait:
                await_applied(
                    cli, lambda: bool(api.get("streams", stream, "sender-policy")["applied"])
                )
    if cli.screen.answered(answer):
        return
    told = answer["expression"] or "nobody: you have set no policy"
    cli.screen.line(f"what you send to {stream} is for {told}")
