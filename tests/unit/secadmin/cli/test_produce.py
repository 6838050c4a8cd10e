"""Sending a file, with a producer that has no broker."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError, Producer

from secadmin.cli.kafka.sending import Sender
from secadmin.cli.tuple_file import Read, read_tuples
from tests.unit.secadmin.cli.fake_kafka import FakeProducer
from tests.unit.secadmin.cli.running import Terminal, answering, problem
from tests.unit.secadmin.cli.service import CA

ATTRIBUTES = [
    {"name": "symbol", "type": "string", "required": True},
    {"name": "price", "type": "double", "required": False},
]
ACCESS = {
    "kind": "send",
    "principal": "send-1",
    "secret": "s",
    "bootstrap": "localhost:1",
    "ca_pem": CA,
    "topic": "in.in1",
}
ENDED = "DELETE /accesses/send-1"


class World:
    """A stream in1 and a producer that does what the test says."""

    def __init__(self, folder: Path, **producer: Any) -> None:
        self.producer = FakeProducer(**producer)
        self.calls: list[str] = []
        self.ending = httpx.Response(204)
        self.folder = folder
        self.terminal: Terminal = answering(
            folder / "p", self._answer, producer=self._open
        ).with_session()

    def _open(self, settings: dict[str, Any]) -> FakeProducer:
        self.producer.settings = settings
        return self.producer

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.calls.append(f"{request.method} {request.url.path}")
        if request.method == "DELETE":
            return self.ending
        reading = request.method == "GET"
        return httpx.Response(200, json={"attributes": ATTRIBUTES} if reading else ACCESS)

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)


def test_a_file_is_sent_and_the_access_ended(tmp_path: Path) -> None:
    world = World(tmp_path)
    rows = "".join(f"s{n},{n}\n" for n in range(20))
    answer = world.terminal.json("produce", "in1", world.file("a.csv", f"symbol,price\n{rows}"))
    assert (answer["sent"], answer["acked"], answer["failed"], answer["rejected"]) == (20, 20, 0, 0)
    assert json.loads(world.producer.written[3]) == {"symbol": "s3", "price": 3.0}
    assert world.calls[-2:] == ["POST /streams/in1/senders", ENDED]
    assert world.producer.settings["ssl.ca.pem"] == CA


def test_json_lines_are_sent_as_they_are(tmp_path: Path) -> None:
    world = World(tmp_path)
    shown = world.terminal.ok("produce", "in1", world.file("a.jsonl", '{"symbol":"x"}\n'))
    assert world.producer.written == [b'{"symbol":"x"}']
    assert shown.startswith("1 acknowledged, 0 failed, 0 not usable")


def test_records_have_the_headers_that_are_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    file = world.file("a.jsonl", '{"symbol":"x"}\n')
    world.terminal.ok("produce", "in1", file)
    assert world.producer.headers is None
    headers = ("--header", "roles=doctor & a=b", "--header", "from=here")
    world.terminal.ok("produce", "in1", file, *headers)
    assert world.producer.headers == {"roles": "doctor & a=b", "from": "here"}
    before = len(world.calls)
    wrong = world.terminal.run("produce", "in1", file, "--header", "roles")
    assert (wrong.exit_code, len(world.calls)) == (2, before)
    assert "'roles' is not NAME=VALUE, such as roles=doctor" in wrong.stderr


def test_a_refused_record_is_an_exit_code(tmp_path: Path) -> None:
    refused = KafkaError(KafkaError.INVALID_RECORD)
    world = World(tmp_path, refuse=lambda value: refused if b"odd" in value else None)
    file = world.file("a.jsonl", '{"symbol":"odd"}\n{"symbol":"ok"}\n')
    result = world.terminal.run("produce", "in1", file, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed"] == 1
    assert "1 times: " in result.stderr


def test_a_record_that_is_too_large_is_counted_and_the_rest_is_sent(tmp_path: Path) -> None:
    world = World(tmp_path, largest=20)
    lines = [f'{{"symbol":"{symbol}"}}\n' for symbol in ("first", "much too large", "last")]
    result = world.terminal.run("produce", "in1", world.file("a.jsonl", "".join(lines)), "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert (answer["sent"], answer["acked"], answer["failed"]) == (3, 2, 1)
    assert world.producer.written == [b'{"symbol":"first"}', b'{"symbol":"last"}']
    assert "1 times: Broker: Message size too large" in result.stderr
    assert world.calls[-1] == ENDED


def test_a_client_says_at_once_that_a_record_is_too_large() -> None:
    """What the fake producer does is what the real one does, without a broker."""
    sender = Sender("in.in1")
    sender.use(Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}))
    sender.send(b"x" * 1_000_001)
    assert (sender.tally.sent, sender.tally.acked, sender.tally.failed) == (1, 0, 1)
    assert "Message size too large" in next(iter(sender.tally.reasons))


def test_a_file_that_cannot_be_read_to_its_end_is_sent_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: Any) -> Iterator[Read]:
        yield from read_tuples(*given)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("secadmin.cli.commands.produce.read_tuples", failing)
    world = World(tmp_path)
    file = world.file("a.jsonl", '{"symbol":"x"}\n{"symbol":"y"}\n')
    result = world.terminal.run("produce", "in1", file, "--json")
    assert result.exit_code == 2
    assert "Input/output error" in result.stderr
    answer = json.loads(result.stdout)
    assert (answer["sent"], answer["acked"], answer["failed"]) == (2, 2, 0)
    assert len(world.producer.written) == 2


def test_a_line_that_is_not_usable_is_told_and_the_rest_is_sent(tmp_path: Path) -> None:
    world = World(tmp_path)
    file = world.file("a.csv", "symbol,price\nx,dear\ny,2\n")
    result = world.terminal.run("produce", "in1", file)
    assert result.exit_code == 1
    assert "line 2: price: 'dear' is not a finite number" in result.stderr
    assert result.stdout.startswith("1 acknowledged, 0 failed, 1 not usable")


def test_an_access_that_ends_meanwhile_ends_the_command(tmp_path: Path) -> None:
    world = World(tmp_path)

    def refuse(value: bytes) -> KafkaError:
        error = KafkaError(KafkaError._AUTHENTICATION)
        world.producer.settings["error_cb"](error)
        return error

    world.producer.refuse = refuse
    file = world.file("a.jsonl", '{"symbol":"x"}\n' * 100)
    result = world.terminal.run("produce", "in1", file)
    assert result.exit_code == 3
    assert "the access has ended" in result.stderr
    assert world.calls[-1] == ENDED


@pytest.mark.parametrize("status", [401, 404])
def test_an_access_that_is_no_more_has_ended(tmp_path: Path, status: int) -> None:
    world = World(tmp_path)
    world.ending = problem(status, "no access 'send-1'")
    result = world.terminal.run("produce", "in1", world.file("a.jsonl", '{"symbol":"x"}\n'))
    assert result.exit_code == 0 and "no access" not in result.stderr
    assert result.stdout.startswith("1 acknowledged, 0 failed, 0 not usable")
    assert "`secadmin stream show in1`" in result.stderr, "what ingest refuses is counted there"
    assert world.calls[-1] == ENDED


def test_an_access_that_cannot_be_ended_is_noted_beside_the_counts(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ending = problem(503, "Kafka is away")
    file = world.file("a.jsonl", '{"symbol":"x"}\nnonsense\n')
    result = world.terminal.run("produce", "in1", file)
    assert result.exit_code == 1
    assert result.stdout.startswith("1 acknowledged, 0 failed, 1 not usable")
    assert "send-1 was not ended: Kafka is away; try secadmin unsubscribe send-1" in result.stderr


def test_a_keyboard_interrupt_waits_for_what_is_sent(tmp_path: Path) -> None:
    world = World(tmp_path)

    def refuse(value: bytes) -> None:
        if b"third" in value and not world.producer.written[2:]:
            world.producer.written.append(value)
            raise KeyboardInterrupt

    world.producer.refuse = refuse
    lines = [f'{{"symbol":"{name}"}}\n' for name in ("first", "second", "third", *"abcdef")]
    result = world.terminal.run("produce", "in1", world.file("a.jsonl", "".join(lines)))
    assert result.exit_code == 130
    assert "stopped before the end" in result.stderr
    assert world.calls[-1] == ENDED


@pytest.mark.parametrize(
    ("name", "text"), [("a.csv", "colour\nred\n"), ("a.txt", ""), ("absent.csv", None)]
)
def test_what_cannot_be_sent_writes_nothing(tmp_path: Path, name: str, text: str | None) -> None:
    world = World(tmp_path)
    file = world.file(name, text) if text is not None else str(tmp_path / name)
    assert world.terminal.run("produce", "in1", file).exit_code == 2
    assert world.producer.written == []
