"""What the tests of SecAdmin's operations share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.migrations import upgrade
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY
from tests.new_catalog import new_catalog
from tests.unit.catalog.world import SettableClock, World
from tests.unit.secadmin.control.floored import Floored, with_floors
from tests.unit.secadmin.control.place import Place, PreparedWorld, fill


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog that is ready to serve."""
    made = new_catalog(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all that the tests begin with, to be copied."""
    path = tmp_path_factory.mktemp("settlement") / "prepared.db"
    catalog = Catalog(f"sqlite:///{path}", AUDIT_KEY, clock=SettableClock())
    upgrade(catalog.engine)
    fill(World(catalog))
    with catalog.engine.connect() as connection:
        connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalog.close()
    return path


@pytest.fixture
def place(tmp_path: Path, prepared: Path) -> Iterator[Place]:
    """Two streams and three outputs over them, and a role that may do everything there."""
    shutil.copy(prepared, tmp_path / "catalog.db")
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY, clock=SettableClock())
    yield Place(catalog, PreparedWorld(catalog))
    catalog.close()


@pytest.fixture
def floored(place: Place) -> Floored:
    """A stream with floors among these, to which bob and joe send."""
    return with_floors(place)
