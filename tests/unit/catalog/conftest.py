"""A catalog for each test, on SQLite and on PostgreSQL."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catalog.migrations import upgrade
from catalog.passwords import Passwords
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY
from tests.lanes import is_long
from tests.postgresql import PostgresqlServer
from tests.unit.catalog.world import SettableClock, World

DATABASES = ("sqlite", "postgresql")
# What they ask of the database is plain, and the service's tests send every request on PostgreSQL.
# So in the sample lane these run on SQLite alone.
_PLAIN = (
    *("category_kind", "independent_senders", "isolated", "label_texts", "level_engines", "moves"),
    *("run_state", "session_levels", "subject", "trials", "wanted"),
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the second database to the long lane where it decides nothing."""
    if is_long():
        return
    plain = tuple(f"tests/unit/catalog/test_{name}.py" for name in _PLAIN)
    left_out = [
        item
        for item in items
        if item.nodeid.startswith(plain)
        and hasattr(item, "callspec")
        and "postgresql" in item.callspec.params.values()
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the tables, to be copied."""
    path = tmp_path_factory.mktemp("catalog") / "migrated.db"
    catalog = Catalog(f"sqlite:///{path}", AUDIT_KEY)
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
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    with server.database(migrated=False) as url:
        yield url


@pytest.fixture(params=DATABASES)
def catalog_url(
    request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path
) -> Iterator[str]:
    """The URL of a database with tables and nothing in them."""
    with migrated_database(request, tmp_path, migrated_file) as url:
        yield url


@contextmanager
def migrated_database(
    request: pytest.FixtureRequest, folder: Path, migrated_file: Path
) -> Iterator[str]:
    """A database of the kind `request.param` with tables and nothing in them; its URL."""
    if request.param == "sqlite":
        shutil.copy(migrated_file, folder / "catalog.db")
        yield f"sqlite:///{folder}/catalog.db"
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    with server.database(migrated=True) as url:
        yield url


@pytest.fixture
def clock() -> SettableClock:
    """A clock that stands still until a test moves it."""
    return SettableClock()


@pytest.fixture
def catalog(catalog_url: str, clock: SettableClock) -> Iterator[Catalog]:
    """An open catalog with tables and nothing in them."""
    opened = Catalog(catalog_url, AUDIT_KEY, clock=clock)
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
