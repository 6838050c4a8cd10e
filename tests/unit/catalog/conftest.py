"""A catalog for each test: on SQLite, and on the PostgreSQL server of an environment variable."""

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from catalog.migrations import upgrade
from catalog.passwords import Passwords
from catalog.store import Catalog
from tests.unit.catalog.world import SettableClock, World

# The URL of a server on which databases may be made; each test makes and drops one of its own.
POSTGRESQL = os.environ.get("SECURE_STREAMS_TEST_POSTGRESQL", "")
DATABASES = ["sqlite", "postgresql"] if POSTGRESQL else ["sqlite"]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the tables, to be copied."""
    path = tmp_path_factory.mktemp("catalog") / "migrated.db"
    catalog = Catalog(f"sqlite:///{path}")
    upgrade(catalog.engine)
    with catalog.engine.connect() as connection:
        connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalog.close()
    return path


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/catalog.db"
        return
    name = f"catalog_{uuid.uuid4().hex}"
    url = make_url(POSTGRESQL).set(drivername="postgresql+psycopg")
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield url.set(database=name).render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


@pytest.fixture
def catalog_url(empty_url: str, migrated_file: Path) -> str:
    """The URL of a database with tables and nothing in them."""
    if empty_url.startswith("sqlite"):
        shutil.copy(migrated_file, make_url(empty_url).database or "")
    else:
        catalog = Catalog(empty_url)
        upgrade(catalog.engine)
        catalog.close()
    return empty_url


@pytest.fixture
def clock() -> SettableClock:
    """A clock that stands still until a test moves it."""
    return SettableClock()


@pytest.fixture
def catalog(catalog_url: str, clock: SettableClock) -> Iterator[Catalog]:
    """An open catalog with tables and nothing in them."""
    opened = Catalog(catalog_url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def world(catalog: Catalog) -> World:
    """The catalog with the SYSTEM object, to be filled by names."""
    return World(catalog)


@pytest.fixture(scope="session")
def passwords() -> Passwords:
    """bcrypt at its lowest cost."""
    return Passwords(cost=4)
