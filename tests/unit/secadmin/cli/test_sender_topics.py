"""Who gets a topic of its own by which call, who loses it, and how many there may be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from catalog.limits import Limits
from catalog.models import SenderRow
from catalog.sender_state import SenderState, draining, report_drained
from catalog.store import Catalog
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.test_health import catalog_of


def who_sends(admin: Terminal, stream: str) -> dict[str, str]:
    """By user, the state of its topic."""
    shown = admin.json("stream", "show", stream)["who_sends"]
    return {sender["user"]: sender["state"] for sender in shown}


def rows(catalog: Catalog, *states: SenderState) -> list[SenderRow]:
    with catalog.read() as session:
        query = select(SenderRow).where(SenderRow.state.in_(states)).order_by(SenderRow.id)
        return list(session.scalars(query))


Call = tuple[str, ...]
WAYS: dict[str, tuple[list[Call], Call, Call]] = {
    "grant": (
        [("user", "assign", "bob", "S")],
        ("grant", "S", "SEND", "stream", "{stream}"),
        ("revoke", "S", "SEND", "stream", "{stream}"),
    ),
    "role": (
        [("grant", "S", "SEND", "stream", "{stream}")],
        ("user", "assign", "bob", "S"),
        ("user", "unassign", "bob", "S"),
    ),
    "junior": (
        [("grant", "S", "SEND", "stream", "{stream}"), ("user", "assign", "bob", "T")],
        ("role", "junior", "T", "S"),
        ("role", "junior", "T", "S", "--remove"),
    ),
    "removed role": (
        [("user", "assign", "bob", "S")],
        ("grant", "S", "SEND", "stream", "{stream}"),
        ("role", "remove", "S"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_may_send_gives_a_topic_and_takes_it(
    admin: Terminal, new_user: NewUser, stream: str, way: str
) -> None:
    new_user("bob", "R")
    for role in ("S", "T"):
        admin.ok("role", "add", role)
    before, give, take = WAYS[way]
    catalog = catalog_of(admin)

    def call(words: Call) -> None:
        admin.ok(*(word.format(stream=stream) for word in words))

    for words in before:
        call(words)
    assert who_sends(admin, stream) == {}
    call(give)
    assert who_sends(admin, stream) == {"bob": "active"}, "no role of bob is active"
    (made,) = rows(catalog, SenderState.ACTIVE)
    assert made.topic.startswith(f"in.{stream}.") and made.opened_at is not None
    call(take)
    assert who_sends(admin, stream) == {"bob": "draining"}
    with catalog.bookkeeping() as session:
        assert draining(session) == {made.id}
        report_drained(session, [made.id])
    assert who_sends(admin, stream) == {}
    catalog.close()


def test_who_may_send_again_gets_another_topic(
    admin: Terminal, new_user: NewUser, stream: str, tmp_path: Path
) -> None:
    bob = new_user("bob", "S")
    admin.ok("grant", "S", "VIEW OBJECT,", "SEND", "stream", stream)

    def topic(folder: str) -> str:
        bob.ok("sender", stream, "--dir", str(tmp_path / folder))
        described = json.loads((tmp_path / folder / "sender.json").read_text())
        return str(described["topic"])

    first = topic("a")
    assert topic("b") == first, "all accesses of a user write its topic"
    admin.ok("revoke", "S", "SEND", "stream", stream)
    assert bob.run("sender", stream, "--dir", str(tmp_path / "c")).exit_code != 0
    admin.ok("grant", "S", "SEND", "stream", stream)
    assert topic("d") != first


def test_a_sender_is_not_told_who_else_sends(
    admin: Terminal, new_user: NewUser, stream: str
) -> None:
    bob = new_user("bob", "S")
    admin.ok("grant", "S", "VIEW OBJECT,", "SEND", "stream", stream)
    shown = bob.json("stream", "show", stream)
    assert shown["senders"] == "own" and "who_sends" not in shown


def test_the_topics_of_a_shared_stream_is_one(
    admin: Terminal, new_user: NewUser, stream: str
) -> None:
    new_user("bob", "S")
    schema = admin.json("stream", "show", stream)["schema"]
    admin.ok("stream", "add", "many", "--schema", schema, "--senders", "shared")
    admin.ok("grant", "S", "SEND", "stream", "many")
    assert who_sends(admin, "many") == {"shared": "active"}
    admin.ok("revoke", "S", "SEND", "stream", "many")
    assert who_sends(admin, "many") == {"shared": "active"}, "it is the stream's"


@pytest.mark.parametrize("users", [Limits().senders])
def test_more_senders_than_a_stream_may_have_are_refused(
    admin: Terminal, stream: str, users: int
) -> None:
    admin.ok("role", "add", "S")
    for number in range(users):
        admin.ok("user", "add", f"u{number}")
        admin.ok("user", "assign", f"u{number}", "S")
    admin.ok("grant", "S", "SEND", "stream", stream)
    admin.ok("user", "add", "late")
    refused = admin.run("user", "assign", "late", "S")
    assert refused.exit_code != 0
    assert f"would have {users + 1} senders, and may have {users}" in refused.stderr
    assert "--senders shared" in refused.stderr
    assert "late" not in who_sends(admin, stream)


def test_senders_take_tasks_of_the_engine(admin: Terminal, new_user: NewUser, stream: str) -> None:
    schema = admin.json("stream", "show", stream)["schema"]
    admin.ok("stream", "add", "wide", "--schema", schema, "--partitions", "64")
    for number in range(3):
        new_user(f"u{number}", "S")
    admin.ok("grant", "S", "SEND", "stream", "wide")
    new_user("u3", "T")
    refused = admin.run("grant", "T", "SEND", "stream", "wide")
    assert refused.exit_code != 0
    assert "the new senders take 64 tasks" in refused.stderr and "of 256 are free" in refused.stderr
    assert set(who_sends(admin, "wide")) == {"u0", "u1", "u2"}
