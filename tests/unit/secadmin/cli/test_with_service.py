"""The commands against the real service, through its ASGI interface."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from secadmin.cli.context import Seams
from tests.unit.secadmin.cli.fake_kafka import FakeConsumer, FakeMessage, FakeProducer
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service, running_service

PASSWORD = "correct horse battery"
NewUser = Callable[..., Terminal]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "service").mkdir()
    with running_service(tmp_path / "service") as running:
        yield running


def terminal(folder: Path, service: Service, **seams: Any) -> Terminal:
    return Terminal(folder, Seams(transport=service.transport, **seams))


def log_in(at: Terminal, user: str, one_time: str) -> Terminal:
    at.ok("login", user, "--password-stdin", text=f"{one_time}\n")
    at.ok("passwd", "--password-stdin", text=f"{one_time}\n{PASSWORD}\n")
    at.ok("login", user, "--password-stdin", text=f"{PASSWORD}\n")
    return at


@pytest.fixture
def admin(tmp_path: Path, service: Service) -> Terminal:
    return log_in(terminal(tmp_path / "admin", service), "admin", service.first_password)


@pytest.fixture
def new_user(tmp_path: Path, service: Service, admin: Terminal) -> NewUser:
    """Makes a user with roles, and logs it in, in a profile of its own."""

    def make(name: str, *roles: str, **seams: Any) -> Terminal:
        one_time = admin.json("user", "add", name)["password"]
        for role in roles:
            admin.run("role", "add", role)
            admin.ok("user", "assign", name, role)
        return log_in(terminal(tmp_path / name, service, **seams), name, one_time)

    return make


@pytest.fixture
def stream(admin: Terminal) -> str:
    attributes = ("ts:timestamp!", "symbol:string", "price:double")
    admin.ok("schema", "add", "trades", *attributes)
    admin.ok("stream", "add", "in1", "--schema", "trades", "--event-time", "ts", "--lateness", "5s")
    return "in1"


@pytest.fixture
def output(admin: Terminal, stream: str, tmp_path: Path) -> str:
    file = tmp_path / "alerts.sql"
    file.write_text("SELECT ts, price FROM in1 WHERE price > 5")
    admin.ok("query", "add", "alerts", str(file))
    return "alerts"


def test_login_by_prompt_and_what_is_kept(tmp_path: Path, service: Service) -> None:
    at = terminal(tmp_path / "admin", service)
    result = at.run("login", "admin", text=f"{service.first_password}\n")
    assert result.exit_code == 0
    assert "logged in as admin (ADMIN)" in result.stdout
    assert "secadmin passwd" in result.stderr
    assert service.first_password not in result.output
    # The server is remembered.
    assert json.loads(at.run("whoami", "--json", server="").stdout)["must_change_password"] is True
    result = at.run("passwd", text=f"{service.first_password}\n{PASSWORD}\n{PASSWORD}\n")
    assert result.exit_code == 0, result.output
    assert at.json("whoami")["must_change_password"] is False


def test_a_wrong_password_keeps_nothing(tmp_path: Path, service: Service) -> None:
    at = terminal(tmp_path / "p", service)
    result = at.run("login", "admin", "--password-stdin", text="wrong\n")
    assert (result.exit_code, result.stderr.count("\n")) == (3, 1)
    assert not (tmp_path / "p").exists()


def test_a_wrong_old_password_is_told_from_an_ended_session(admin: Terminal) -> None:
    result = admin.run("passwd", "--password-stdin", text=f"wrong\n{PASSWORD}\n")
    assert (result.exit_code, "old password" in result.stderr) == (3, True)
    admin.ok("whoami")


def test_login_ends_the_profiles_former_session(admin: Terminal, service: Service) -> None:
    token = json.loads((admin.folder / "session.json").read_text())["token"]
    result = admin.run("login", "admin", "--password-stdin", text=f"{PASSWORD}\n")
    assert "former session as admin" in result.stderr
    now = json.loads((admin.folder / "session.json").read_text())["token"]
    assert token != now


def test_logout_forgets_the_session(admin: Terminal) -> None:
    admin.ok("logout")
    assert admin.run("whoami").exit_code == 3


def test_roles_of_a_session(new_user: NewUser) -> None:
    bob = new_user("bob", "CUSTOMER 1", "CUSTOMER2")
    assert bob.json("whoami")["roles"] == ["CUSTOMER 1", "CUSTOMER2"]
    bob.ok("deactivate", "CUSTOMER 1")
    assert bob.json("whoami")["roles"] == ["CUSTOMER2"]
    bob.ok("login", "bob", "--role", "CUSTOMER 1", "--password-stdin", text=f"{PASSWORD}\n")
    assert bob.json("whoami")["roles"] == ["CUSTOMER 1"]


def test_what_runs_is_stopped_and_removed_by_id(admin: Terminal, output: str) -> None:
    (row,) = admin.json("execution", "list")
    execution = str(row["id"])
    assert admin.json("stream", "readers", "in1") == [{"id": row["id"], "running": True}]
    assert f"stopped executions {execution}" in admin.ok("stream", "stop-readers", "in1")
    assert "nothing: it had stopped before" in admin.ok("execution", "stop", execution)
    assert "stopped by the owner of a stream" in admin.ok("query", "show", output)
    admin.ok("query", "start", output)
    assert f"stopped executions {execution}" in admin.ok("execution", "stop", execution)
    assert "is weak" in admin.ok("execution", "weak", execution, "on")
    assert f"removed executions {execution}" in admin.ok("execution", "remove", execution)
    assert admin.json("execution", "list") == []


def test_a_forgotten_password(admin: Terminal, new_user: NewUser) -> None:
    bob = new_user("bob")
    made = admin.json("user", "reset-password", "bob")["password"]
    assert bob.run("whoami").exit_code == 3
    bob.ok("login", "bob", "--password-stdin", text=f"{made}\n")
    assert bob.json("whoami")["must_change_password"] is True
    assert "one-time password of bob: " in admin.ok("user", "reset-password", "bob")


def test_users_and_roles(admin: Terminal, new_user: NewUser) -> None:
    bob = new_user("bob", "A")
    admin.ok("role", "add", "B")
    admin.ok("role", "junior", "A", "B")
    assert {row["name"]: row["juniors"] for row in admin.json("role", "list")}["A"] == ["B"]
    admin.ok("role", "junior", "A", "B", "--remove")
    admin.ok("user", "lock", "bob")
    assert bob.run("whoami").exit_code == 3
    assert "bob\tyes\tA" in admin.ok("user", "list")
    admin.ok("user", "unlock", "bob")
    admin.ok("user", "unassign", "bob", "A")
    admin.ok("role", "remove", "A")
    assert bob.run("user", "list").exit_code == 3


def test_grants(admin: Terminal, new_user: NewUser, stream: str) -> None:
    bob = new_user("bob", "CUSTOMER1")
    assert bob.run("catalog").exit_code == 4
    admin.ok("grant", "CUSTOMER1", "VIEW", "CATALOG", "on", "system")
    said = admin.ok("grant", "CUSTOMER1", "READ TUPLE", "view_object", "stream", stream)
    assert said == "granted READ TUPLE, VIEW OBJECT on stream in1 to CUSTOMER1\n"
    assert [row["permission"] for row in admin.json("grants", "stream", stream)] == [
        *("READ TUPLE", "VIEW OBJECT")
    ]
    assert bob.json("catalog") == [{"kind": "stream", "name": stream, "owner": "admin"}]
    admin.ok("revoke", "CUSTOMER1", "VIEW OBJECT", "stream", stream)
    assert bob.json("catalog", "--kind", "stream") == []
    assert "CUSTOMER1" in admin.ok("grants", "system")
    assert admin.ok("explain", "bob", "READ TUPLE", "stream", stream).startswith("allowed: ")


def test_a_warning_where_senders_lose_an_aggregate(admin: Terminal, new_user: NewUser) -> None:
    new_user("bob", "READER")
    admin.ok("schema", "add", "trades", "ts:timestamp!", "symbol:string", "price:double")
    declared = ("--declare-window", "1m", "--declare-function", "avg", "--declare-minimum", "5")
    timed = ("--schema", "trades", "--event-time", "ts")
    admin.ok("stream", "add", "in2", *timed, *declared)
    for role in ("SENDER", "TEAM"):
        admin.ok("role", "add", role)
    first = admin.run("grant", "READER", "READ AGGREGATE", "stream", "in2")
    second = admin.run("grant", "SENDER", "SEND", "stream", "in2")
    assert (first.stderr, second.stderr) == ("", "")
    told = (
        "warning: READ AGGREGATE on stream in2 does not count for users who may also SEND there by "
        "any of their roles, and there are some now: only with READ TUPLE are they shown its "
        "aggregate\n"
    )
    for words in (
        ("user", "assign", "bob", "SENDER"),
        ("role", "junior", "READER", "SENDER"),
        ("grant", "READER", "SEND", "stream", "in2"),
    ):
        result = admin.run(*words)
        assert (result.exit_code, result.stderr) == (0, told), words
        assert len(admin.json(*words)["warnings"]) == 1
    assert admin.run("role", "junior", "READER", "SENDER", "--remove").stderr == ""
    assert admin.json("role", "junior", "TEAM", "SENDER") == {"warnings": []}


def test_schemas_and_streams(admin: Terminal, stream: str) -> None:
    shown = admin.json("schema", "show", "trades")
    assert [a["required"] for a in shown["attributes"]] == [True, False, False]
    assert admin.json("stream", "show", stream)["lateness_ms"] == 5000
    assert "price" in admin.ok("stream", "show", stream)
    usual = admin.json("stream", "show", stream)
    assert (usual["format"], usual["time_format"], usual["unknown_fields"]) == (
        *("json", "iso", "quarantine"),
    )
    assert admin.run("schema", "remove", "trades").exit_code == 6
    declared = ("--declare-window", "1m", "--declare-key", "symbol", "--declare-function", "avg")
    also = ("--event-time", "ts", "--max-bytes", "1kB", "--max-ahead", "1h")
    written = ("--time-format", "epoch_ms", "--unknown-fields", "ignore")
    minimum = ("--declare-minimum", "5")
    admin.ok(*("stream", "add", "in2", "--schema", "trades"), *declared, *minimum, *also, *written)
    assert admin.json("stream", "show", "in2")["declared_aggregate"]["window_ms"] == 60_000
    own = admin.json("stream", "show", "in2")
    assert (own["time_format"], own["unknown_fields"]) == ("epoch_ms", "ignore")
    assert "epoch_ms" in admin.ok("stream", "show", "in2")
    assert (own["time"], own["lateness_ms"]) == ("broker", 10_000)
    admin.ok("stream", "add", "old", "--schema", "trades", "--event-time", "ts", "--time", "data")
    old = admin.json("stream", "show", "old")
    assert (old["time"], old["lateness_ms"]) == ("data", 0)
    admin.ok("stream", "remove", "in2")
    assert admin.run("stream", "show", "in2").exit_code == 5


def test_queries(admin: Terminal, output: str) -> None:
    listed = admin.ok("query", "list")
    assert listed.splitlines()[1].startswith("alerts\tadmin\tsql")
    shown = admin.ok("query", "show", "alerts")
    assert "SELECT ts, price FROM in1" in shown
    tree = admin.ok("query", "plan", "alerts")
    assert "filter price > 5" in tree
    assert "stream in1" in tree
    admin.ok("query", "stop", "alerts")
    assert admin.json("query", "show", "alerts")["running"] is False
    admin.ok("query", "start", "alerts")
    admin.ok("output", "weak", output, "on")
    assert admin.json("output", "show", output)["weak"] is True
    assert "retention" in admin.ok("output", "show", output)
    admin.ok("query", "remove", "alerts")
    assert admin.run("output", "show", output).exit_code == 5


def test_a_mistake_is_pointed_at(admin: Terminal, stream: str, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT price,\n       colour\nFROM in1\n")
    result = admin.run("query", "add", "q", str(file))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1:] == ["  2 |        colour", "    |        ^"]


def test_a_subscription_from_beginning_to_end(
    admin: Terminal, service: Service, output: str, tmp_path: Path
) -> None:
    folder = tmp_path / "d"
    admin.ok("grant", "ADMIN", "READ TUPLE", "stream", "in1")
    admin.ok("subscribe", output, "--dir", str(folder))
    [access] = admin.json("accesses")
    described = json.loads((folder / "subscription.json").read_text())
    assert described["principal"] == access["principal"]
    assert described["topic_pattern"] == r"^out\.alerts\..*"
    assert f"secret-of-{access['principal']}" in (folder / "librdkafka.conf").read_text()
    assert {principal for principal, _ in service.kafka.readers} == {access["principal"]}
    admin.ok("unsubscribe", str(folder))
    assert not folder.exists()
    assert (service.kafka.readers, admin.json("accesses")) == (set(), [])


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


def test_audit(admin: Terminal) -> None:
    entries = admin.json("audit", "--limit", "3")
    assert len(entries) == 3
    after = entries[-1]["seq"]
    assert admin.json("audit", "--after", str(after), "--limit", "1")[0]["seq"] > after
    assert admin.ok("audit", "verify").startswith("intact: ")
    assert admin.json("audit", "verify")["intact"] is True


def test_names_are_completed_from_the_server(
    admin: Terminal, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SECADMIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "3")
    for line, offered in (
        ("secadmin stream show i", ["in1"]),
        ("secadmin schema show ", ["trades"]),
        ("secadmin grant R READ", ["READ_TUPLE", "READ_AGGREGATE"]),
        ("secadmin output weak ", []),
    ):
        monkeypatch.setenv("COMP_WORDS", line)
        assert admin.run(prog_name="secadmin").stdout.split() == offered
