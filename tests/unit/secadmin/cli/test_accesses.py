"""Subscriptions, quarantines and senders, against the real service."""

from __future__ import annotations

import json
import re
from collections import deque
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.secadmin.cli.fake_kafka import FakeConsumer, FakeMessage, FakeProducer
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service


def test_a_subscription_from_beginning_to_end(
    admin: Terminal, service: Service, output: str, tmp_path: Path
) -> None:
    folder = tmp_path / "d"
    admin.ok("grant", "ADMIN", "READ TUPLE", "stream", "in1")
    admin.ok("subscribe", output, "--dir", str(folder))
    [access] = admin.json("accesses")
    # Each way to name it shows the same.
    for named in (access["handle"], access["principal"], str(folder)):
        assert admin.json("accesses", named) == access
    described = json.loads((folder / "subscription.json").read_text())
    assert described["principal"] == access["principal"]
    assert described["topic_pattern"] == r"^out\.alerts\..*"
    assert f"secret-of-{access['principal']}" in (folder / "librdkafka.conf").read_text()
    assert {principal for principal, _ in service.kafka.readers} == {access["principal"]}
    admin.ok("unsubscribe", str(folder))
    assert not folder.exists()
    assert (service.kafka.readers, admin.json("accesses")) == (set(), [])


def test_an_access_is_ended_by_its_handle(
    admin: Terminal, service: Service, output: str, tmp_path: Path
) -> None:
    admin.ok("grant", "ADMIN", "READ TUPLE", "stream", "in1")
    given = json.loads(admin.ok("subscribe", output, "--dir", str(tmp_path / "d"), "--json"))
    elsewhere = given["handle"].replace("://", "://other.")
    assert "is no handle of an access at" in admin.run("unsubscribe", elsewhere).output
    admin.ok("unsubscribe", given["handle"])
    assert service.kafka.readers == set()
    gone = admin.run("accesses", given["handle"])
    assert gone.exit_code == 5 and f"no access '{given['principal']}'" in gone.output


def test_subscribe_waits_until_it_is_fed(
    admin: Terminal, service: Service, output: str, tmp_path: Path
) -> None:
    """Here the runner says that it feeds the class when it is asked for the second time."""
    asked = []

    def look(request: httpx.Request) -> None:
        if request.url.path == "/accesses":
            asked.append(request)
        if len(asked) == 2:
            service.feed_all()

    admin.ok("grant", "ADMIN", "READ TUPLE", "stream", "in1")
    service.transport.before = look
    result = admin.run("subscribe", output, "--dir", str(tmp_path / "d"), "--json", wait="1m")
    assert (result.exit_code, json.loads(result.stdout)["fed"]) == (0, True), result.output
    said = result.stderr.splitlines()
    assert said[0] == "waiting until it is fed, at most 60 s"
    assert re.fullmatch(r"it is fed, after [0-9.]+ s", said[1])
    assert len(said) == len(asked) == 2


@pytest.mark.parametrize("wait", ["0s", "0.1s"])
def test_what_is_not_fed_in_time_stands_all_the_same(
    admin: Terminal, output: str, tmp_path: Path, wait: str
) -> None:
    admin.ok("grant", "ADMIN", "READ TUPLE", "stream", "in1")
    result = admin.run("subscribe", output, "--dir", str(tmp_path / "d"), wait=wait)
    assert result.exit_code == 0
    assert "not fed after 0 s" in result.stderr
    assert [row["fed"] for row in admin.json("accesses")] == [False]


def test_nobody_waits_where_that_is_not_wanted_or_no_use(
    admin: Terminal, output: str, tmp_path: Path
) -> None:
    result = admin.run("subscribe", output, "--dir", str(tmp_path / "d"), "--no-wait", wait="1m")
    assert (result.exit_code, result.stderr) == (0, "")
    result = admin.run("subscribe", output, "--dir", str(tmp_path / "e"), wait="1m")
    assert "nothing yet that you may read" in result.stderr
    assert admin.run("subscribe", output, "--dir", str(tmp_path / "f"), wait="x").exit_code == 2


def test_the_files_of_an_access_that_has_ended_are_deleted(
    admin: Terminal, output: str, tmp_path: Path
) -> None:
    folder = tmp_path / "d"
    admin.ok("grant", "ADMIN", "READ TUPLE", "stream", "in1")
    admin.ok("subscribe", output, "--dir", str(folder))
    [access] = admin.json("accesses")
    admin.ok("unsubscribe", access["principal"])
    assert admin.run("unsubscribe", access["principal"]).exit_code == 5
    assert "had ended already" in admin.ok("unsubscribe", str(folder))
    assert not folder.exists()


def test_a_folder_that_is_taken_makes_no_access(
    admin: Terminal, output: str, tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").touch()
    assert admin.run("subscribe", output, "--dir", str(tmp_path / "d")).exit_code == 2
    assert admin.json("accesses") == []


def test_a_refused_subscription_leaves_no_folder(
    new_user: NewUser, output: str, tmp_path: Path
) -> None:
    bob = new_user("bob", "CUSTOMER1")
    assert bob.run("subscribe", output, "--dir", str(tmp_path / "d")).exit_code == 5
    assert not (tmp_path / "d").exists()


def test_quarantine_and_sender(admin: Terminal, new_user: NewUser, tmp_path: Path) -> None:
    bob = new_user("bob", "OWNER")
    for permission in ("ADD SCHEMA", "ADD STREAM"):
        admin.ok("grant", "OWNER", permission, "system")
    bob.ok("schema", "add", "s", "ts:timestamp!")
    bob.ok("stream", "add", "mine", "--schema", "s")
    bob.ok("grant", "OWNER", "READ TUPLE,", "SEND", "stream", "mine")
    bob.ok("quarantine", "mine", "--dir", str(tmp_path / "q"), "--keep")
    bob.ok("sender", "mine", "--dir", str(tmp_path / "s"))
    accesses = {row["kind"]: row for row in bob.json("accesses")}
    assert {kind: row["keep"] for kind, row in accesses.items()} == {
        "quarantine": True,
        "send": False,
    }
    assert json.loads((tmp_path / "s" / "sender.json").read_text())["topic"].startswith("in.mine.")
    described = json.loads((tmp_path / "q" / "subscription.json").read_text())
    assert described["topic"] == "quarantine.mine"
    bob.ok("unsubscribe", accesses["send"]["principal"])
    assert (tmp_path / "s").exists()
    bob.ok("unsubscribe", str(tmp_path / "q"))
    assert bob.json("accesses") == []


def test_who_may_read_nothing_of_a_quarantine_is_told_at_once(
    admin: Terminal, tmp_path: Path
) -> None:
    admin.ok("role", "add", "doctor")
    admin.ok("schema", "add", "s", "ts:timestamp!")
    for name, rule in (("open", ()), ("closed", ("--label-rule", "'doctor'"))):
        admin.ok("stream", "add", name, "--schema", "s", *rule)
        admin.ok("grant", "ADMIN", "READ TUPLE", "stream", name)
        told = admin.run("quarantine", name, "--dir", str(tmp_path / name)).stderr
        assert ("may read nothing there now" in told) == (name == "closed")


def test_produce_and_consume(admin: Terminal, new_user: NewUser, stream: str) -> None:
    producer = FakeProducer()
    record = FakeMessage(b'{"price": 7.5}', [("label", b"1")])

    def make(settings: dict[str, Any]) -> FakeProducer:
        producer.settings = settings
        return producer

    consumer = FakeConsumer(deque([record]))
    bob = new_user("bob", "CUSTOMER1", producer=make, consumer=lambda _: consumer)
    admin.ok("grant", "CUSTOMER1", "VIEW OBJECT", "SEND", "READ TUPLE", "stream", stream)
    admin.ok("grant", "CUSTOMER1", "VIEW OBJECT", "schema", "trades")
    admin.ok("grant", "CUSTOMER1", "ADD QUERY", "system")
    file = bob.folder / "t.csv"
    file.write_text("ts,price\n2026-01-31,7.5\n")
    assert bob.json("produce", stream, str(file))["acked"] == 1
    assert producer.settings["sasl.password"].startswith("secret-of-send-")
    bob.ok("query", "add", "dear", "-", "--language", "sql", text="SELECT price FROM in1")
    assert bob.ok("consume", "dear", "--max", "1") == '{"price": 7.5}\t1\n'
    assert consumer.subscribed == [r"^out\.dear\..*"]
    assert bob.json("accesses") == []
