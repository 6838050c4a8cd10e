"""The owner of a stream marks the senders that count for its declared aggregate."""

from __future__ import annotations

import pytest

from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal

NO_OBJECT, REFUSED_INPUT = 5, 2


def independent(admin: Terminal, stream: str) -> dict[str, bool]:
    """By user, whether it counts."""
    shown = admin.json("stream", "show", stream)["who_sends"]
    return {sender["user"]: sender["independent"] for sender in shown}


@pytest.fixture
def senders(admin: Terminal, new_user: NewUser, stream: str) -> tuple[Terminal, Terminal]:
    """Al and bob, who may see the stream and send to it."""
    made = new_user("al", "S"), new_user("bob", "S")
    admin.ok("grant", "S", "VIEW OBJECT,", "SEND", "stream", stream)
    return made


def test_a_sender_counts_from_when_it_is_marked_until_it_is_unmarked(
    admin: Terminal, senders: tuple[Terminal, Terminal], stream: str
) -> None:
    assert independent(admin, stream) == {"al": False, "bob": False}
    for _ in range(2):
        told = admin.ok("stream", "mark-independent", stream, "bob")
        assert told == f"bob counts as an independent sender of {stream}\n"
        assert independent(admin, stream) == {"al": False, "bob": True}
    admin.ok("revoke", "S", "SEND", "stream", stream)
    admin.ok("grant", "S", "SEND", "stream", stream)
    assert independent(admin, stream)["bob"], "it is the same user"
    admin.ok("stream", "unmark-independent", stream, "bob")
    assert not independent(admin, stream)["bob"]
    marks = [
        (entry["outcome"], entry["action"].split()[0], entry["detail"].get("user"))
        for entry in admin.json("audit", "--limit", "100")
        if "independent sender" in entry["action"]
    ]
    assert marks == [("changed", "mark", "bob")] * 2 + [("changed", "unmark", "bob")]


def test_only_who_may_change_the_stream_marks(
    admin: Terminal, senders: tuple[Terminal, Terminal], stream: str
) -> None:
    _, bob = senders
    for command in ("mark-independent", "unmark-independent"):
        refused = bob.run("stream", command, stream, "bob")
        assert refused.exit_code != 0
        assert "CHANGE PERM" in refused.stderr
    assert independent(admin, stream) == {"al": False, "bob": False}
    admin.ok("grant", "S", "CHANGE PERM", "stream", stream)
    bob.ok("stream", "mark-independent", stream, "al")
    assert independent(admin, stream) == {"al": True, "bob": False}


def test_only_a_sender_with_a_topic_of_its_own_is_marked(
    admin: Terminal, senders: tuple[Terminal, Terminal], new_user: NewUser, stream: str
) -> None:
    new_user("eve", "R")
    schema = admin.json("stream", "show", stream)["schema"]
    admin.ok("stream", "add", "many", "--schema", schema, "--senders", "shared")
    admin.ok("grant", "S", "SEND", "stream", "many")
    for name, user in ((stream, "eve"), (stream, "nobody"), ("many", "bob"), ("many", "shared")):
        refused = admin.run("stream", "mark-independent", name, user)
        assert refused.exit_code == NO_OBJECT
        assert f"no sender of the stream {name!r} is called {user!r}" in refused.stderr
    refused = admin.run("stream", "unmark-independent", stream, "bob")
    assert refused.exit_code == NO_OBJECT
    assert "no independent sender" in refused.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--declare-minimum", "65"), "less than or equal to 64"),
        (("--declare-minimum", "2", "--senders", "shared"), "a shared topic is one sender"),
    ],
)
def test_an_aggregate_that_nobody_could_ever_see_is_refused(
    admin: Terminal, stream: str, words: tuple[str, ...], why: str
) -> None:
    schema = admin.json("stream", "show", stream)["schema"]
    timed = ("--schema", schema, "--event-time", "ts")
    declared = ("--declare-window", "1m", "--declare-function", "avg")
    refused = admin.run("stream", "add", "in2", *timed, *declared, *words)
    assert refused.exit_code == REFUSED_INPUT
    assert why in refused.stderr.replace("\n", " ")
