"""Queries that name roles (000 §4.1): what changes above a role counts for those that have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service


@pytest.fixture
def reader(
    admin: Terminal, new_user: NewUser, service: Service, stream: str, tmp_path: Path
) -> Terminal:
    """Bob, who subscribes with the role R alone to a query of a senior role, BOSS over MID."""
    bob = new_user("bob", "R")
    for senior, junior in (("MID", "R"), ("BOSS", "MID")):
        admin.ok("role", "add", senior)
        admin.ok("role", "junior", senior, junior)
    admin.ok("grant", "BOSS", "ADD QUERY", "system")
    admin.ok("grant", "R", "READ TUPLE", "VIEW OBJECT", "stream", stream)
    admin.ok("grant", "R", "VIEW OBJECT", "schema", "trades")
    boss = new_user("boss", "BOSS")
    file = tmp_path / "q.sql"
    file.write_text(f"AS BOSS SELECT ts, price FROM {stream} WHERE price > 5")
    boss.ok("query", "add", "q", str(file))
    boss.ok("grant", "R", "VIEW OBJECT", "SUBSCRIBE", "output", "q")
    bob.ok("subscribe", "q", "--dir", str(tmp_path / "d"))
    assert len(service.kafka.readers) == 1
    return bob


@pytest.mark.parametrize(
    "taken",
    [
        ("role", "junior", "MID", "R", "--remove"),
        ("role", "junior", "BOSS", "MID", "--remove"),
        ("role", "remove", "MID"),
        ("role", "remove", "BOSS"),
    ],
    ids=" ".join,
)
def test_when_a_role_is_below_no_more_it_reads_nothing_more(
    admin: Terminal, reader: Terminal, service: Service, taken: tuple[str, ...]
) -> None:
    admin.ok(*taken)
    assert service.kafka.readers == set()
    assert len(reader.json("accesses")) == 1, "the access is there, and shows nothing"


def test_when_a_role_is_below_again_it_reads_again(
    admin: Terminal, reader: Terminal, service: Service
) -> None:
    [before] = service.kafka.readers
    admin.ok("role", "junior", "BOSS", "MID", "--remove")
    admin.ok("role", "junior", "BOSS", "MID")
    [again] = service.kafka.readers
    assert again[0] == before[0] == reader.json("accesses")[0]["principal"]
