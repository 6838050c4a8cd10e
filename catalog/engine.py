"""Opens the catalog's database: SQLite in a file, or PostgreSQL by URL."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import ArgumentError

from catalog.errors import InvalidInput
from catalog.outage import outages_translated

# This option is set on the connections of transactions that write.
WRITING = "catalog_writing"
_PRIVATE = 0o600
_URLS = "the catalog's URL is sqlite:///<file> or postgresql://..."
# The number of the advisory lock for transactions that write. A database has 2**64 numbers.
_WRITER_LOCK = 0x5EC_AD_319
_SWITCH_PAUSE_S = 0.01
_POOL: dict[str, Any] = {
    "pool_size": 10,
    "max_overflow": 30,
    "pool_timeout": 10,
    # Parameters include hashes of passwords and tokens, and errors are logged.
    "hide_parameters": True,
}


def open_engine(url: str, lock_timeout_ms: int = 10_000) -> Engine:
    """Make the database engine for a URL.

    A transaction that waits longer than `lock_timeout_ms` for a lock fails. Raises InvalidInput for
    a URL of another kind of database or a file that cannot be made, Unavailable for a database that
    cannot be opened.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidInput(_URLS) from None
    backend = parsed.get_backend_name()
    if backend == "sqlite" and parsed.database not in (None, "", ":memory:"):
        engine = _open_sqlite(parsed, lock_timeout_ms)
    elif backend in ("postgresql", "postgres"):
        engine = _open_postgresql(parsed, lock_timeout_ms)
    else:
        raise InvalidInput(_URLS)
    event.listen(engine, "before_cursor_execute", _refuse_nul)
    return engine


def for_reading(engine: Engine) -> Engine:
    """The engine for transactions that read. Each sees one snapshot and cannot write."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


def for_writing(engine: Engine) -> Engine:
    """The engine for transactions that write. One runs at a time, over all services.

    On PostgreSQL they are READ COMMITTED. So a transaction that has waited for the lock reads what
    the transaction before it wrote.
    """
    return engine.execution_options(**{WRITING: True})


def _refuse_nul(_engine: object, _cursor: object, _sql: str, given: Any, *_rest: object) -> None:
    """Raise InvalidInput for a text with NUL. SQLite would accept it, PostgreSQL would not."""
    for row in given if isinstance(given, list) else [given]:
        values = row.values() if isinstance(row, dict) else row
        if any(isinstance(value, str) and "\0" in value for value in values):
            raise InvalidInput("no name and no text may contain the character NUL")


def _open_postgresql(url: URL, lock_timeout_ms: int) -> Engine:
    options = (
        f"-c lock_timeout={lock_timeout_ms} -c timezone=UTC"
        # A service that hangs in a change must not block all others for ever.
        " -c idle_in_transaction_session_timeout=60000"
    )
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": 5,
            "options": options,
            # If there are several hosts, use the one that accepts writes, not a standby.
            "target_session_attrs": "read-write",
        },
        **_POOL,
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # This lock does what SQLite's BEGIN IMMEDIATE does. Without it, two transactions could
        # lock rows in different orders and wait for each other, and one of them would fail.
        if connection.get_execution_options().get(WRITING):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})")

    return engine


def _open_sqlite(url: URL, lock_timeout_ms: int) -> Engine:
    _make_private(Path(url.database or ""))
    engine = create_engine(url, **_POOL)

    @event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own BEGIN comes too late and is never IMMEDIATE. `begin` below sends it.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {lock_timeout_ms}")
        connection.execute("PRAGMA foreign_keys = ON")
        # A revocation that was confirmed to its user must survive a power cut.
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = bool(connection.get_execution_options().get(WRITING))
        connection.exec_driver_sql(f"PRAGMA query_only = {int(not writing)}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    with outages_translated():
        _switch_to_wal(engine, time.monotonic() + lock_timeout_ms / 1000)
    return engine


def _make_private(path: Path) -> None:
    """Make the database file with mode 0600 before SQLite does. -wal and -shm get its mode."""
    try:
        if not path.is_file():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE))
        for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            if file.exists():
                file.chmod(_PRIVATE)
    except OSError as error:
        raise InvalidInput(f"cannot open the catalog {path}: {error.strerror}") from error


def _switch_to_wal(engine: Engine, deadline: float) -> None:
    """Switch the file to WAL mode for good, so that readers never wait for the writer.

    If two connections switch at once, SQLite refuses one of them without waiting.
    """
    raw = engine.raw_connection()
    try:
        while not _is_wal(raw.cursor(), deadline):
            time.sleep(_SWITCH_PAUSE_S)
    finally:
        raw.close()


def _is_wal(cursor: DBAPICursor, deadline: float) -> bool:
    """Whether the file is in WAL mode now. False if another one switches it before `deadline`."""
    try:
        cursor.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
        if not busy or time.monotonic() > deadline:
            raise
        return False
    return True
