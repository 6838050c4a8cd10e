"""The history of the tables (Alembic). `upgrade` needs no alembic.ini and no working directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from catalog.engine import for_reading, for_writing
from catalog.errors import InvalidInput
from catalog.outage import outages_translated

# Any number will do, but it must be the same for all services of a deployment.
_LOCK = 7_305_004


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the tables to that revision, in one transaction. Do nothing if they have it already.

    Several services may call it at once: one goes first, and the others find nothing to do. Raises
    Unavailable if the database cannot be reached, InvalidInput for tables of an unknown version.
    """
    config = _config()
    with (
        outages_translated(),
        for_writing(engine).connect() as connection,
        _tables_made_anew(connection),
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        config.attributes["connection"] = connection
        before = _require_known(connection, config)
        command.upgrade(config, revision)
        if _revision(connection) != before:
            _require_whole(connection)


@contextmanager
def _tables_made_anew(connection: Connection) -> Iterator[None]:
    """Let migrations make tables of SQLite anew to which rows of other tables refer.

    SQLite changes few things of a table, so Alembic drops it behind a copy. With foreign keys this
    fails as soon as a row refers to it. They cannot be switched within a transaction.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        driver.execute("PRAGMA foreign_keys = ON")


def _require_whole(connection: Connection) -> None:
    """Raise RuntimeError if a row of SQLite refers to a row that is not there."""
    if connection.dialect.name != "sqlite":
        return
    dangling = {str(row[0]) for row in connection.execute(text("PRAGMA foreign_key_check"))}
    if dangling:
        raise RuntimeError(f"rows of {', '.join(sorted(dangling))} refer to rows that are missing")


def require_known_tables(engine: Engine) -> None:
    """Raise what `upgrade` would raise, and change nothing. A database may have no tables yet."""
    with outages_translated(), for_reading(engine).begin() as connection:
        _require_known(connection, _config())


def _config() -> Config:
    config = Config()
    # Config interpolates %, and the name of a folder may contain one.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _require_known(connection: Connection, config: Config) -> str | None:
    """The revision of the tables. Raises InvalidInput if this version does not know it."""
    found = _revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise InvalidInput(
            f"another version made this catalog (its tables are of revision {found}), and this "
            "version cannot read it: start with a new state folder, or with an empty database"
        )
    return found
