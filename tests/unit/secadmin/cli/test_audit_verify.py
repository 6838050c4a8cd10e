"""`audit verify` against the real service, whose database somebody has been at."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.tampering import deeds
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import running_service
from tests.unit.secadmin.cli.test_with_service import log_in, terminal

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
    assert result.stdout == f"NOT intact: [{NUMBER}, '{SAID[deed]}'] ({NUMBER - 1} entries)\n"
    result = admin.run("audit", "verify", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["first_problem"] == [NUMBER, SAID[deed]]
