"""stream add --rate and stream rate, and what a declared rate refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import Result

from catalog.limits import MAX_RATE
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service

REFUSED_INPUT, REFUSED, NO_OBJECT, NO_ROOM = 2, 4, 5, 6
COUNT = """SELECT count(*) AS n FROM (SELECT ts FROM fast UNION ALL SELECT ts FROM slow)
GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"""


def rate(admin: Terminal, stream: str) -> int | None:
    found: int | None = admin.json("stream", "show", stream)["rate"]
    return found


def test_a_rate_is_declared_with_the_stream_and_changed_later(admin: Terminal, stream: str) -> None:
    assert rate(admin, stream) is None, "nothing was declared"
    admin.ok("stream", "add", "fast", "--schema", "trades", "--rate", "5000")
    assert rate(admin, "fast") == 5000
    shown = admin.ok("stream", "show", "fast").splitlines()
    assert ["rate", "5000"] in [line.split() for line in shown]
    said = admin.ok("stream", "rate", "fast", "200")
    assert said == "the declared rate of fast is 200 tuples a second\n"
    assert rate(admin, "fast") == 200
    assert admin.ok("stream", "rate", "fast", "--remove") == "fast has no declared rate any more\n"
    assert rate(admin, "fast") is None
    assert rate(admin, stream) is None


def test_who_declared_which_rate_is_in_the_audit_log(
    admin: Terminal, new_user: NewUser, stream: str
) -> None:
    bob = new_user("bob", "R")
    admin.ok("grant", "R", "VIEW OBJECT", "stream", stream)
    admin.ok("stream", "rate", stream, "7")
    assert bob.run("stream", "rate", stream, "8").exit_code == REFUSED
    admin.ok("stream", "rate", stream, "--remove")
    noted = [
        (each["actor"], each["outcome"], each["object"], each["detail"])
        for each in admin.json("audit", "--limit", "100")
        if each["action"] == "set rate"
    ]
    target = f"stream {stream}"
    assert noted == [
        ("admin", "changed", target, {"rate": 7, "before": None}),
        ("bob", "denied", target, {"rate": 8}),
        ("admin", "changed", target, {"rate": None, "before": 7}),
    ]


def test_only_who_may_change_the_stream_declares_its_rate(
    admin: Terminal, new_user: NewUser, stream: str
) -> None:
    bob = new_user("bob", "R")
    assert bob.run("stream", "rate", stream, "9").exit_code == NO_OBJECT, "it is not visible"
    admin.ok("grant", "R", "VIEW OBJECT,", "SEND,", "READ TUPLE", "stream", stream)
    refused = bob.run("stream", "rate", stream, "9")
    assert (refused.exit_code, "CHANGE PERM" in refused.stderr) == (REFUSED, True)
    assert rate(admin, stream) is None
    admin.ok("grant", "R", "CHANGE PERM", "stream", stream)
    bob.ok("stream", "rate", stream, "9")
    assert rate(admin, stream) == 9


@pytest.mark.parametrize("words", [("0",), ("fast",), (str(MAX_RATE + 1),), (), ("3", "--remove")])
def test_what_is_no_rate_is_refused(admin: Terminal, stream: str, words: tuple[str, ...]) -> None:
    assert admin.run("stream", "rate", stream, *words).exit_code == REFUSED_INPUT
    assert rate(admin, stream) is None
    if words and not words[1:]:
        line = ("stream", "add", "new", "--schema", "trades", "--rate", *words)
        assert admin.run(*line).exit_code == REFUSED_INPUT


def test_the_highest_rate_is_one_that_a_stream_can_have(admin: Terminal, stream: str) -> None:
    admin.ok("stream", "rate", stream, str(MAX_RATE))
    assert rate(admin, stream) == MAX_RATE


def subscribe(user: Terminal, folder: Path) -> Result:
    return user.run("subscribe", "counts", "--dir", str(folder), "--no-wait")


@pytest.mark.parametrize("semantics", ["view", "isolated", "exact"])
def test_a_fast_stream_has_fewer_classes_and_no_open_one_is_closed_for_it(
    admin: Terminal, service: Service, new_user: NewUser, tmp_path: Path, semantics: str
) -> None:
    admin.ok("schema", "add", "times", "ts:timestamp!")
    timed = ("--schema", "times", "--event-time", "ts")
    admin.ok("stream", "add", "fast", *timed, "--rate", "400000")
    admin.ok("stream", "add", "slow", *timed, "--rate", "1")
    words = ("query", "add", "counts", "-", "--language", "sql", "--semantics", semantics)
    admin.ok(*words, text=COUNT)
    users = [new_user(name, name.upper()) for name in ("al", "bob", "cy")]
    for role, streams in (("AL", ["fast"]), ("BOB", ["slow"]), ("CY", ["fast", "slow"])):
        admin.ok("grant", role, "VIEW OBJECT,", "SUBSCRIBE", "output", "counts")
        for stream in streams:
            admin.ok("grant", role, "READ TUPLE", "stream", stream)
    al, bob, cy = users
    assert subscribe(al, tmp_path / "of al").exit_code == 0
    refused = subscribe(bob, tmp_path / "of bob")
    assert refused.exit_code == NO_ROOM
    assert "has no room for another delivery class; it may have 1" in refused.stderr
    assert "fast" not in refused.stderr and "400" not in refused.stderr
    admin.ok("stream", "rate", "fast", "1000")
    assert subscribe(bob, tmp_path / "of bob").exit_code == 0
    before = service.kafka.readers.copy()
    admin.ok("stream", "rate", "fast", str(MAX_RATE))
    assert service.kafka.readers == before and len(before) == 2, "nobody loses anything"
    assert subscribe(cy, tmp_path / "of cy").exit_code == NO_ROOM
    assert service.kafka.readers == before
    admin.ok("stream", "rate", "fast", "--remove")
    assert subscribe(cy, tmp_path / "of cy").exit_code == 0
    assert service.kafka.readers > before
