"""A migration may make a table of SQLite anew to which rows of other tables refer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from catalog.engine import for_writing
from catalog.migrations import upgrade
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY

_DANGLING = "INSERT INTO query_roles VALUES (99, 98)"


def test_rows_that_refer_to_nothing_are_refused_again_afterwards(tmp_path: Path) -> None:
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY)
    upgrade(catalog.engine)
    with pytest.raises(IntegrityError), for_writing(catalog.engine).begin() as connection:
        connection.execute(text(_DANGLING))
    catalog.close()


def test_an_upgrade_that_leaves_such_rows_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    catalog = Catalog(f"sqlite:///{file}", AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_13")
    with closing(sqlite3.connect(file)) as plain, plain:
        plain.execute(_DANGLING)
    with pytest.raises(RuntimeError, match="rows of query_roles refer to rows that are missing"):
        upgrade(catalog.engine)
    with catalog.engine.connect() as connection:
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    assert found == "v0_2_13"
    catalog.close()
