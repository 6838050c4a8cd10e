"""Naughty strings as arguments of every command, in files, and in what the server answers.

Never a Python trace, never a character that a terminal would obey, never a secret.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import typer
from typer.testing import Result

from secadmin.cli.context import Seams
from secadmin.cli.main import app
from secadmin.cli.safe_text import is_safe
from tests.bad_inputs import internals_in, naughty_strings, xml_files
from tests.lanes import number_of
from tests.unit.secadmin.cli.fake_kafka import FakeProducer
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service, running_service

PASSWORD = "correct horse battery"
# A call takes a tenth of a second, so only every so many strings is put into an argument.
STEP = number_of("BAD_ARGUMENT_STEP", sample=18, long=6)
HOSTILE = "\x1b]0;title\x07\x1b[2J\r\u202e[red]x[/red]:smile:"


@dataclass(frozen=True)
class Command:
    """A command by its words, with its parameters."""

    words: tuple[str, ...]
    parameters: tuple[click.Parameter, ...]

    def __str__(self) -> str:
        return " ".join(self.words)

    def line(self, values: dict[str, str], place: str = "", text: str = "") -> list[str]:
        """The command's words with all that is required, and with the text at the place."""
        # Names differ by what they are names of.
        own = {"schema": "trades", "stream": "in1"}.get(self.words[0], values["name"])
        given = values | {"name": own, place: text}
        line = list(self.words)
        for parameter in self.parameters:
            name = parameter.name or ""
            if not parameter.required and name != place:
                continue
            # Typer has a class of its own for options, which is none of click's.
            option = parameter.param_type_name == "option"
            line += [parameter.opts[0], given[name]] if option else [given[name]]
        return line


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """All commands of the command line, from itself."""
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*words, name))
        else:
            # A flag has no text.
            taking = [p for p in found.params if not getattr(p, "is_flag", False)]
            yield Command((*words, name), tuple(taking))


COMMANDS = tuple(commands(typer.main.get_command(app)))
PLACES = [(command, p.name or "") for command in COMMANDS for p in command.parameters]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text may become the name of a file: it is made in a folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def admin(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    folder = tmp_path_factory.mktemp("admin")
    at = Terminal(folder, Seams(service.transport, lambda _: FakeProducer()))
    at.ok("login", "admin", "--password-stdin", text=f"{service.first_password}\n")
    at.ok("passwd", "--password-stdin", text=f"{service.first_password}\n{PASSWORD}\n")
    at.ok("login", "admin", "--password-stdin", text=f"{PASSWORD}\n")
    at.ok("schema", "add", "trades", "s:string", "n:bigint")
    at.ok("stream", "add", "in1", "--schema", "trades")
    at.ok("query", "add", "big", "-", "--language", "sql", text="SELECT s FROM in1")
    at.ok("role", "add", "R")
    at.ok("user", "add", "bob", "--password-stdin", text=f"{PASSWORD}\n")
    at.ok("user", "assign", "bob", "R")
    at.ok("grant", "ADMIN", "SEND", "READ TUPLE", "stream", "in1")
    return at


@pytest.fixture
def values(tmp_path: Path) -> dict[str, str]:
    """A value for every parameter that some command requires."""
    (tmp_path / "f.sql").write_text("SELECT s FROM in1")
    return {
        "user": "bob",
        "role": "R",
        "senior": "R",
        "execution": "1",
        "company": "Company1",
        "label": "1",
        "name": "big",
        "output": "big",
        "stream": "in1",
        "schema": "trades",
        "file": str(tmp_path / "f.sql"),
        "source": "big",
        "permission": "SEND",
        "kind": "stream",
        "words": "SEND",
        "access": "send-1",
        "folder": str(tmp_path / "d"),
        "switch": "on",
        "record": '{"s": "x"}',
        "old": "big",
    }


def check(result: Result, text: str, *secrets: str) -> None:
    """A known exit code, no trace, no secret, and nothing that a terminal obeys."""
    said = f"{text!r}: {result.output}"
    assert result.exit_code in range(9), said
    assert [c for c in result.output if c not in "\n\t" and not is_safe(c)] == [], said
    assert internals_in(result.output, text) == [], said
    assert not any(secret in result.output for secret in secrets), said


def as_arguments(text: str) -> str | None:
    """The text as a process would get it: no NUL, and what is no UTF-8 as Python keeps it."""
    return None if "\0" in text else text.replace("\ud800", "\udcff")


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_as_arguments(
    command: Command, admin: Terminal, service: Service, values: dict[str, str]
) -> None:
    usable = [t for text in naughty_strings()[::STEP] if (t := as_arguments(text)) is not None]
    each = math.ceil(len(usable) / len(PLACES))
    token = json.loads((admin.folder / "session.json").read_text())["token"]
    for number, (owner, place) in enumerate(PLACES):
        if owner is not command:
            continue
        share = list(islice(cycle(usable), number * each, (number + 1) * each))
        for text in [*share, HOSTILE, "\udcff"]:
            result = admin.run(*command.line(values, place, text), text="x\ny\n")
            check(result, text, PASSWORD, token)
            if result.exit_code:
                errors = [line for line in result.stderr.splitlines() if "error: " in line]
                assert len(errors) == 1 or "Usage:" in result.stderr, result.stderr
    assert admin.json("whoami")["user"] == "admin"


def test_global_options(admin: Terminal) -> None:
    for text in [*naughty_strings()[::40], HOSTILE, "\udcff"]:
        if (given := as_arguments(text)) is not None:
            for option in ("--server", "--ca"):
                check(admin.run(option, given, "catalog"), given)
            check(admin.run(given), given)


@pytest.mark.parametrize("extension", ["sql", "xml"])
def test_as_query_files(extension: str, admin: Terminal, tmp_path: Path) -> None:
    file = tmp_path / f"q.{extension}"
    contents = [text.encode("utf-8", "surrogatepass") for text in naughty_strings()[::20]]
    contents += [text.encode() for text in xml_files().values()]
    for content in [*contents, HOSTILE.encode(), b"\xff\xfe", b""]:
        file.write_bytes(content)
        result = admin.run("query", "add", "q", str(file))
        assert result.exit_code == 2, content
        check(result, content.decode(errors="replace"))


def test_as_passwords(admin: Terminal, tmp_path: Path) -> None:
    for text in [*naughty_strings()[::20], HOSTILE]:
        password = as_arguments(text)
        if password is None or not password.isprintable() or "\udcff" in password:
            continue
        result = admin.run("login", "bob", "--password-stdin", text=f"{password}\n")
        assert result.exit_code in (2, 3)
        check(result, "", *([password] if len(password) > 20 else []))
    assert admin.json("whoami")["user"] == "admin"


@dataclass(frozen=True)
class Sending:
    """A terminal whose producer keeps what it is given."""

    terminal: Terminal
    producer: FakeProducer

    def send(self, file: Path, content: bytes) -> tuple[Result, dict[str, Any]]:
        """Produce the file; the result, and the counts that it tells."""
        file.write_bytes(content)
        result = self.terminal.run("produce", "in1", str(file), "--json")
        check(result, content.decode(errors="replace"))
        return result, json.loads(result.stdout)


@pytest.fixture
def sending(admin: Terminal, service: Service) -> Sending:
    producer = FakeProducer(room=100_000)
    return Sending(Terminal(admin.folder, Seams(service.transport, lambda _: producer)), producer)


def whole(text: str) -> bool:
    """Whether the text can be in a file: no half of a pair."""
    return text.isascii() or "\ud800" not in text


def taken(text: str) -> bool:
    """Whether a stream takes the string."""
    return whole(text) and not {"\x1e", "\x1f"} & set(text)


def test_as_csv(sending: Sending, tmp_path: Path) -> None:
    strings = [text for text in naughty_strings() if taken(text) and text]
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\r\n")
    rows.writerow(["s", "n"])
    rows.writerows([text, number] for number, text in enumerate(strings))
    _, counts = sending.send(tmp_path / "t.csv", written.getvalue().encode())
    assert (counts["acked"], counts["failed"], counts["rejected"]) == (len(strings), 0, 0)
    sent = [json.loads(record) for record in sending.producer.written]
    assert sent == [{"s": text, "n": number} for number, text in enumerate(strings)]


def test_as_csv_headers_and_numbers(sending: Sending, tmp_path: Path) -> None:
    for text in naughty_strings()[::40]:
        if not whole(text):
            continue
        written = io.StringIO()
        csv.writer(written).writerows([["s", text], ["x", "1"]])
        result, counts = sending.send(tmp_path / "t.csv", written.getvalue().encode())
        assert result.exit_code == 0 or counts["acked"] == 0
    numbers = [text for text in naughty_strings() if whole(text) and "\n" not in text and text]
    written = io.StringIO()
    csv.writer(written).writerows([["n"], *([text] for text in numbers)])
    _, counts = sending.send(tmp_path / "t.csv", written.getvalue().encode())
    assert counts["acked"] + counts["rejected"] == len(numbers)
    assert counts["rejected"] > 1_000


def test_as_json_lines(sending: Sending, tmp_path: Path) -> None:
    good = [json.dumps({"s": text}).encode() for text in naughty_strings() if taken(text)]
    bad = [
        raw
        for text in naughty_strings()
        if (raw := text.encode("utf-8", "surrogatepass")).strip() and b"\n" not in raw
    ]
    pairs = list(zip(good, bad, strict=False))
    lines = [line for pair in pairs for line in pair]
    _, counts = sending.send(tmp_path / "t.jsonl", b"\n".join(lines))
    assert sending.producer.written == good[: len(pairs)]
    assert (counts["acked"], counts["rejected"]) == (len(pairs), len(pairs))


def test_a_csv_that_ends_in_other_bytes_is_sent_so_far(sending: Sending, tmp_path: Path) -> None:
    """What was read before is sent, waited for and counted; the rest is reported."""
    rows = b"".join(b"row%d,1\n" % n for n in range(20_000))
    result, counts = sending.send(tmp_path / "t.csv", b"s,n\n" + rows + b"\xff\xfe,1\n")
    assert result.exit_code == 2
    assert "not text in UTF-8 after line" in result.stderr
    assert counts["acked"] == counts["sent"] == len(sending.producer.written) > 0
    assert counts["failed"] == 0


class HostileServer(httpx.BaseTransport):
    """The service, but with something hostile behind every text that it answers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The service's answer, made hostile."""
        answer = self._service.transport.handle_request(request)
        if not answer.content:
            return answer
        return httpx.Response(answer.status_code, json=_hostile(json.loads(answer.content)))


def _hostile(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_hostile(item) for item in value]
    return value + HOSTILE if isinstance(value, str) else value


@pytest.mark.parametrize("option", [(), ("--json",)], ids=["words", "json"])
@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_what_a_server_says_is_only_shown(
    command: Command,
    option: tuple[str, ...],
    admin: Terminal,
    service: Service,
    values: dict[str, str],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "p"
    Terminal(folder, Seams(service.transport)).ok(
        "login", "admin", "--password-stdin", text=f"{PASSWORD}\n"
    )
    at = Terminal(folder, Seams(HostileServer(service), lambda _: FakeProducer()))
    result = at.run(*command.line(values), *option, text="x\ny\n")
    check(result, HOSTILE)
