"""What consume prints, with a consumer that has no broker."""

from __future__ import annotations

import errno
import json
import re
from collections import deque
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from secadmin.cli.kafka.access import Access
from secadmin.cli.kafka.access_folder import write_access_folder
from secadmin.cli.private_files import new_private_folder
from secadmin.cli.refused import shown_bytes
from secadmin.cli.safe_text import is_safe
from tests.unit.secadmin.cli.fake_kafka import FakeConsumer, FakeMessage
from tests.unit.secadmin.cli.running import Terminal, answering, problem

LABEL, ID = ("label", b"3"), ("id", b"f00")
ENDED = "DELETE /accesses/output-0a1b when closed"
FENCE = FakeMessage(None, [("fence", b"")], at=1)


def record(value: object, at: int = 0) -> FakeMessage:
    return FakeMessage(json.dumps(value).encode(), [LABEL, ID], at=at)


def failure(code: int) -> FakeMessage:
    return FakeMessage(failure=KafkaError(code))


class World:
    """A folder that subscribe wrote, and a consumer that gives what the test says."""

    def __init__(self, folder: Path, access: Access, *messages: Any) -> None:
        self.consumer = FakeConsumer(deque(messages))
        self.calls: list[str] = []
        self.ending = httpx.Response(204)
        self.dir = str(folder / "d")
        self.access = access
        write_access_folder(new_private_folder(folder / "d"), access)
        self.terminal: Terminal = answering(
            folder / "p", self._answer, consumer=self._open
        ).with_session()

    def _open(self, settings: dict[str, Any]) -> FakeConsumer:
        self.consumer.settings = settings
        return self.consumer

    def _answer(self, request: httpx.Request) -> httpx.Response:
        closed = " when closed" if self.consumer.closed else ""
        self.calls.append(f"{request.method} {request.url.path}{closed}")
        if request.method == "DELETE":
            return self.ending
        names = ("kind", "principal", "secret", "bootstrap", "ca_pem", "group_prefix")
        answer = {name: getattr(self.access, name) for name in (*names, "topic_pattern")}
        return httpx.Response(200, json=answer)


def test_a_folder_that_others_can_write_to_opens_nothing(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record(1))
    Path(world.dir).chmod(0o777)
    result = world.terminal.run("consume", world.dir, "--timeout", "0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"chmod 700 {world.dir}" in result.stderr
    assert world.consumer.subscribed == []


def test_a_line_is_value_and_label_and_fences_are_left_out(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record({"a": 1, "s": "ü"}), FENCE, None, record({"a": 2}))
    shown = world.terminal.ok("consume", world.dir, "--max", "2")
    assert shown == '{"a": 1, "s": "ü"}\t3\n{"a": 2}\t3\n'
    assert world.consumer.subscribed == [r"^out\.alerts\..*"]
    assert world.consumer.closed


def left_out(number: int) -> FakeMessage:
    """A tuple that the query left out."""
    told = {"reason": "window_full", "window": 1, "time": "2026-01-31T12:00:00.000000Z"}
    marks = [LABEL, ("id", f"{number}".encode()), ("left-out", json.dumps(told).encode())]
    return FakeMessage(None, [*marks, ("fence", b"")], at=number)


def test_what_the_query_left_out_is_noted_and_shown_if_it_is_asked_for(
    tmp_path: Path, reader: Access
) -> None:
    # The last but one is told again after a crash.
    messages = (left_out(5), record({"a": 1}), FENCE, left_out(6), left_out(6), left_out(7))
    world = World(tmp_path, reader, *messages)
    result = world.terminal.run("consume", world.dir, "--timeout", "0")
    assert (result.exit_code, result.stdout) == (0, '{"a": 1}\t3\n')
    assert result.stderr.count("consume --left-out") == 1
    world = World(tmp_path / "asked", reader, *messages)
    lines = world.terminal.ok("consume", world.dir, "--timeout", "0", "--left-out").splitlines()
    told = '{"reason": "window_full", "window": 1, "time": "2026-01-31T12:00:00.000000Z"}'
    assert lines == [f"{told}\t3"] * 3


def upsert(key: str, version: int, value: object) -> FakeMessage:
    """An upsert, or a deletion if the value is None."""
    marks = [LABEL, ("id", f"{key}{version}".encode()), ("row-version", str(version).encode())]
    content = None if value is None else json.dumps(value).encode()
    return FakeMessage(content, marks, name=json.dumps({"s": key}).encode())


UPSERTS = (
    upsert("a", 2, {"s": "a", "n": 2}),
    upsert("b", 1, {"s": "b", "n": 1}),
    upsert("a", 1, {"s": "a", "n": 1}),
    upsert("c", 1, {"s": "c", "n": 1}),
    FENCE,
    upsert("b", 3, None),
    upsert("b", 2, {"s": "b", "n": 2}),
)


def test_an_upsert_has_its_key_and_a_deletion_has_no_value(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, *UPSERTS)
    lines = world.terminal.ok("consume", world.dir, "--max", "6").splitlines()
    assert lines[0] == '{"s": "a", "n": 2}\t3\t{"s": "a"}'
    assert lines[4] == 'null\t3\t{"s": "b"}'
    world = World(tmp_path / "json", reader, *UPSERTS)
    shown = world.terminal.ok("consume", world.dir, "--max", "1", "--json")
    assert json.loads(shown)["key"] == {"s": "a"}
    assert json.loads(shown)["version"] == 2


def test_the_newest_of_each_key_is_that_of_the_highest_version(
    tmp_path: Path, reader: Access
) -> None:
    world = World(tmp_path, reader, *UPSERTS, record({"s": "d"}))
    result = world.terminal.run("consume", world.dir, "--max", "7", "--newest")
    assert result.stdout.splitlines() == [
        '{"s": "a", "n": 2}\t3\t{"s": "a"}',
        '{"s": "c", "n": 1}\t3\t{"s": "c"}',
    ]
    assert "1 records are left out" in result.stderr
    world = World(tmp_path / "table", reader, *UPSERTS)
    shown = world.terminal.ok("consume", world.dir, "--max", "6", "--newest", "--table")
    assert shown.splitlines() == ["s\tn\tlabel", "a\t2\t3", "c\t1\t3"]


def test_with_json_a_line_is_an_object(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record({"a": 1}))
    shown = world.terminal.ok("consume", world.dir, "--max", "1", "--json")
    assert json.loads(shown) == {"value": {"a": 1}, "label": "3", "id": "f00"}


def test_values_cannot_reach_the_terminal_raw(tmp_path: Path, reader: Access) -> None:
    raw = FakeMessage(b"\xff\x1b[2J\n", [("reason", b"is not\tJSON\x1b")])
    world = World(tmp_path, reader, record({"s": "\x1b[2J\u202e"}), raw)
    shown = world.terminal.ok("consume", world.dir, "--max", "2")
    assert shown.count("\n") == 2
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.endswith("\\xff\\x1b[2J\\x0a\tis not\\x09JSON\\x1b\n")


def test_a_refused_record_is_shown_as_it_came(tmp_path: Path, reader: Access) -> None:
    raw = b'{"a": 1e400, "a": "\\u0041\x1b[2J\xff\xe2\x80\xae"}'
    places = [
        ("sender", b"12"),
        ("partition", b"3"),
        ("offset", b"17"),
        ("timestamp", b"1800000000500"),
    ]
    messages = (FakeMessage(raw, [("reason", b"a: given\ttwice"), *places]) for _ in range(2))
    world = World(tmp_path, reader, *messages)
    shown = world.terminal.ok("consume", world.dir, "--max", "1")
    text, reason, place, at = shown.rstrip("\n").split("\t")
    assert text == r'{"a": 1e400, "a": "\\u0041\x1b[2J\xff\xe2\x80\xae"}'
    assert (reason, place, at) == (r"a: given\x09twice", "12:3:17", "2027-01-15T08:00:00.500Z")
    answer = json.loads(world.terminal.ok("consume", world.dir, "--max", "1", "--json"))
    own = {"sender": 12, "partition": 3, "offset": 17, "timestamp": "2027-01-15T08:00:00.500Z"}
    assert answer == {"value": text, "reason": "a: given\ttwice", **own}


@given(st.binary())
def test_shown_bytes_are_safe_and_can_be_had_back(raw: bytes) -> None:
    shown = shown_bytes(raw)
    assert all(map(is_safe, shown))
    parts = re.split(r"(\\\\|\\x[0-9a-f]{2})", shown)
    back = b"".join(
        b"\\" if part == r"\\" else bytes.fromhex(part[2:]) if n % 2 else part.encode()
        for n, part in enumerate(parts)
    )
    assert back == raw


def test_a_table(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record({"a": 1}), record({"a": None}))
    shown = world.terminal.ok("consume", world.dir, "--max", "2", "--table")
    assert shown == "a\tlabel\n1\t3\n\t3\n"


def test_a_table_shows_what_came_before_the_access_ended(tmp_path: Path, reader: Access) -> None:
    ended = failure(KafkaError.GROUP_AUTHORIZATION_FAILED)
    world = World(tmp_path, reader, record({"a": 1}), ended)
    result = world.terminal.run("consume", world.dir, "--table")
    assert (result.exit_code, result.stdout) == (3, "a\tlabel\n1\t3\n")
    assert "the access has ended" in result.stderr


def test_a_move_is_followed(tmp_path: Path, reader: Access) -> None:
    moved = failure(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    world = World(tmp_path, reader, record(1), moved, moved, record(2))
    result = world.terminal.run("consume", world.dir, "--max", "2")
    assert (result.exit_code, result.stdout) == (0, "1\t3\n2\t3\n")
    assert result.stderr.count("has changed; following") == 1


def test_an_ended_access_ends_the_command(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record(1), failure(KafkaError.GROUP_AUTHORIZATION_FAILED))
    result = world.terminal.run("consume", world.dir)
    assert (result.exit_code, result.stdout) == (3, "1\t3\n")
    assert "the access has ended" in result.stderr
    assert world.consumer.closed


@pytest.mark.parametrize("status", [401, 404, 503])
def test_what_ended_the_command_is_told_whatever_becomes_of_its_access(
    tmp_path: Path, reader: Access, status: int
) -> None:
    world = World(tmp_path, reader, record(1), failure(KafkaError.GROUP_AUTHORIZATION_FAILED))
    world.ending = problem(status, "so it is")
    result = world.terminal.run("consume", "alerts")
    assert (result.exit_code, result.stdout) == (3, "1\t3\n")
    assert "the access has ended" in result.stderr
    assert ("output-0a1b was not ended: so it is" in result.stderr) is (status == 503)
    assert world.calls[-1] == ENDED


def test_a_refused_login_ends_the_command(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader)
    refused = KafkaError(KafkaError._AUTHENTICATION)
    world.consumer.messages.append(lambda: world.consumer.settings["error_cb"](refused))
    assert world.terminal.run("consume", world.dir).exit_code == 3


def test_it_stops_when_nothing_comes(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record(1))
    assert world.terminal.ok("consume", world.dir, "--timeout", "0") == "1\t3\n"


def test_a_keyboard_interrupt_is_clean(tmp_path: Path, reader: Access) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    world = World(tmp_path, reader, record(1), interrupt)
    result = world.terminal.run("consume", "alerts")
    assert (result.exit_code, result.stdout) == (130, "1\t3\n")
    assert world.consumer.closed
    assert world.calls == ["POST /outputs/alerts/subscriptions", ENDED]


@pytest.mark.parametrize(
    ("begin", "offset"),
    [(("--from", "end"), 17), (("--from", "beginning"), -2), (("--newest",), -2)],
)
def test_from_uses_a_group_of_its_own(
    tmp_path: Path, reader: Access, begin: tuple[str, ...], offset: int
) -> None:
    world = World(tmp_path, reader, record(1))
    world.terminal.ok("consume", world.dir, *begin, "--max", "1")
    group = world.consumer.settings["group.id"]
    assert group.startswith("output-0a1b.")
    assert group != "output-0a1b.main"
    assert [p.offset for p in world.consumer.assigned] == [offset]
    assert world.consumer.stored == []


def test_without_from_the_folders_group_goes_on(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record(1))
    world.terminal.ok("consume", world.dir, "--max", "1")
    assert world.consumer.settings["group.id"] == "output-0a1b.main"
    assert world.consumer.assigned == []
    assert world.calls == []


def test_the_group_goes_on_behind_what_was_shown_and_fences(tmp_path: Path, reader: Access) -> None:
    moved = failure(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    world = World(tmp_path, reader, record(1, at=0), FENCE, moved, record(2, at=2))
    world.terminal.ok("consume", world.dir, "--max", "2")
    assert world.consumer.settings["enable.auto.offset.store"] is False
    assert world.consumer.stored == [0, 1, 2]


@pytest.mark.parametrize("breaking", [BrokenPipeError(errno.EPIPE, ""), KeyboardInterrupt()])
def test_what_was_not_shown_is_left_to_the_group(
    tmp_path: Path, reader: Access, monkeypatch: pytest.MonkeyPatch, breaking: BaseException
) -> None:
    """Also it is the consumer that ends first, which tells the group, and then its access."""

    def show(line: str, flush: bool) -> None:
        if line.startswith("2"):
            raise breaking

    monkeypatch.setattr("secadmin.cli.commands.consume.print", show, raising=False)
    world = World(tmp_path, reader, record(1, at=7), record(2, at=8), record(3, at=9))
    assert world.terminal.run("consume", "alerts").exit_code != 0
    assert world.consumer.stored == [7]
    assert world.calls[-1] == ENDED


@pytest.mark.parametrize("code", [KafkaError._STATE, KafkaError._UNKNOWN_PARTITION])
def test_a_partition_that_was_taken_away_meanwhile_ends_nothing(
    tmp_path: Path, reader: Access, code: int
) -> None:
    world = World(tmp_path, reader, record(1), record(2))
    world.consumer.unstorable = KafkaError(code)
    assert world.terminal.ok("consume", world.dir, "--max", "2") == "1\t3\n2\t3\n"


def test_a_group_that_cannot_go_on_is_told(tmp_path: Path, reader: Access) -> None:
    world = World(tmp_path, reader, record(1), record(2))
    world.consumer.unstorable = KafkaError(KafkaError._INVALID_ARG)
    result = world.terminal.run("consume", world.dir, "--timeout", "0")
    assert (result.exit_code, result.stdout) == (1, "1\t3\n")
    assert "error: Kafka: " in result.stderr
