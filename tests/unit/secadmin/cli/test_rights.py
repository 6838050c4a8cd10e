"""Users, roles, grants and the audit log, against the real service."""

from __future__ import annotations

from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal


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
    unquoted = admin.ok("explain", "bob", "READ", "TUPLE", "on", "stream", stream)
    assert unquoted.startswith("allowed: READ TUPLE on stream in1 for bob\n")
    assert admin.run("explain", "bob", "SEND,", "READ TUPLE", "stream", stream).exit_code == 2


def test_words_that_change_nothing_are_told_as_such(admin: Terminal, stream: str) -> None:
    admin.ok("role", "add", "R")
    words = ("R", "READ TUPLE", "on", "stream", stream)
    said = admin.ok("revoke", *words)
    assert said == "nothing has changed: R did not hold READ TUPLE on stream in1\n"
    admin.ok("grant", *words)
    said = admin.ok("grant", *words)
    assert said == "nothing has changed: R holds READ TUPLE already on stream in1\n"


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


def test_audit(admin: Terminal) -> None:
    entries = admin.json("audit", "--limit", "3")
    assert len(entries) == 3
    after = entries[-1]["seq"]
    assert admin.json("audit", "--after", str(after), "--limit", "1")[0]["seq"] > after
    assert admin.ok("audit", "verify").startswith("intact: ")
    assert admin.json("audit", "verify")["intact"] is True


def test_limits_of_a_role(admin: Terminal) -> None:
    admin.ok("role", "add", "ANALYST")
    assert "ANALYST has no limits" in admin.ok("role", "limits", "ANALYST")
    given = ("--operators", "join, window", "--window", "1h", "--slide", "1s", "--rows", "10")
    assert "set the limits of ANALYST" in admin.ok("role", "limits", "ANALYST", *given)
    shown = admin.ok("role", "limits", "ANALYST")
    assert [line.split(maxsplit=1) for line in shown.splitlines()] == [
        ["operators", "join, window"],
        ["window", "1h"],
        ["slide", "1s"],
        ["rows", "10"],
    ]
    assert admin.json("role", "limits", "ANALYST")["limits"]["window_ms"] == 3_600_000
    assert admin.run("role", "limits", "ANALYST", "--remove", "--rows", "1").exit_code == 2
    assert admin.run("role", "limits", "ANALYST", "--operators", "sort").exit_code == 2
    assert "ANALYST has no limits" in admin.ok("role", "limits", "ANALYST", "--remove")
    assert admin.json("role", "limits", "ANALYST") == {"limits": None}
