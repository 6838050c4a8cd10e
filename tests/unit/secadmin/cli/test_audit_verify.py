"""`audit verify` against the real service, whose database somebody has been at."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.tampering import cut_off, deeds, emptied
from tests.unit.secadmin.cli.people import log_in, terminal
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import running_service
from tests.waiting import wait_until

NUMBER = 3
BROKEN = "the entry was changed, inserted or moved"
SAID = {
    "changed": BROKEN,
    "removed": f"the entry is missing; the next one there is {NUMBER + 1}",
    "left out": BROKEN,
    "moved": BROKEN,
}


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[Terminal]:
    with running_service(tmp_path) as service:
        yield log_in(terminal(tmp_path / "admin", service), "admin", service.first_password)


@pytest.mark.parametrize("deed", SAID)
def test_tampering_is_told_with_the_entry_and_an_exit_code(
    deed: str, admin: Terminal, tmp_path: Path
) -> None:
    assert admin.run("audit", "verify").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection, connection:
        [last] = connection.execute("SELECT max(seq) FROM audit").fetchone()
        assert last > NUMBER
        for statement in deeds(NUMBER, last)[deed]:
            assert connection.execute(statement).rowcount > 0, statement
    result = admin.run("audit", "verify")
    assert result.exit_code == 1
    said = f"NOT intact: entry {NUMBER}: {SAID[deed]} ({NUMBER - 1} entries)"
    assert result.stdout.splitlines()[0] == said
    result = admin.run("audit", "verify", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["first_problem"] == [NUMBER, SAID[deed]]


def _compared(admin: Terminal) -> int:
    """Up to which entry the file was compared."""
    [anchor] = json.loads(admin.run("audit", "verify", "--json").stdout)["anchors"]
    assert anchor["place"] == "the file" and anchor["problem"] is None
    return int(anchor["newest"] or 0)


def _act(admin: Terminal, tmp_path: Path) -> None:
    """Three changes, whose heads are in the file when this returns."""
    for number in range(3):
        admin.ok("role", "add", f"R{number}")
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection:
        changed = "SELECT max(seq) FROM audit WHERE outcome = 'changed'"
        [last] = connection.execute(changed).fetchone()
    wait_until(lambda: _compared(admin) >= last, "the head is in the file")


def _execute(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


@pytest.mark.parametrize("deed", ["cut off", "emptied", "an older copy"])
def test_what_is_taken_from_the_end_shows_by_the_file(
    deed: str, admin: Terminal, tmp_path: Path
) -> None:
    database, older = tmp_path / "catalog.db", tmp_path / "older.db"
    _copy(database, older)
    _act(admin, tmp_path)
    assert admin.ok("audit", "verify").startswith("intact: ")
    if deed == "an older copy":
        _copy(older, database)
    else:
        _execute(database, *(cut_off(NUMBER) if deed == "cut off" else emptied()))
    # `verify` itself goes on with what is left.
    result = admin.run("audit", "verify")
    assert result.exit_code == 1
    assert "NOT intact" in result.stdout and "the file says" in result.stdout
    for number in range(6):
        admin.run("role", "add", f"later {number}")
    assert admin.run("audit", "verify").exit_code == 1


def test_a_rollback_of_everything_shows_by_a_head_kept_elsewhere(tmp_path: Path) -> None:
    database, older = tmp_path / "catalog.db", tmp_path / "older.db"
    with running_service(tmp_path) as service:
        admin = log_in(terminal(tmp_path / "admin", service), "admin", service.first_password)
        _copy(database, older)
        _act(admin, tmp_path)
        head = admin.ok("audit", "head").strip()
        assert admin.ok("audit", "verify", "--head", head).endswith("it is part of the log\n")
        assert admin.run("audit", "verify", "--head", "5:x").exit_code == 2
    _copy(older, database)
    (tmp_path / "audit" / "heads").unlink()
    with running_service(tmp_path) as service:
        again = terminal(tmp_path / "admin", service)
        assert again.run("audit", "verify").exit_code == 0
        result = again.run("audit", "verify", "--head", head)
        assert result.exit_code == 1
        assert f"the given head says that there were {head.split(':')[0]}" in result.stdout


def test_an_anchor_that_lost_what_was_sent_is_told(admin: Terminal, tmp_path: Path) -> None:
    _act(admin, tmp_path)
    (tmp_path / "audit" / "heads").unlink()
    result = admin.run("audit", "verify")
    assert result.exit_code == 1
    assert "the file lacks the head" in result.stdout
