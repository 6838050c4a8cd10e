"""Turns the errors of a database that is away, locked or full into `Unavailable`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from catalog.errors import Unavailable

# Primary result codes (the low byte) for the state of the database, not for a wrong statement.
_SQLITE_OUTAGES = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }
)
# A transaction of ours was idle for too long (`catalog.engine`). In psycopg this is not an
# operational error.
_POSTGRESQL_OUTAGES = frozenset({"25P03"})
# The database has become a standby, so it accepts no writes. In a reading transaction it is a bug.
_READ_ONLY = "25006"
# The tables are not there yet, or their owner has not given the rights to them yet.
_NOT_MADE = frozenset({"42P01", "42501"})


@contextmanager
def outages_translated(*, writing: bool = False) -> Iterator[None]:
    """Raise Unavailable if the database cannot be reached or is locked for too long.

    `writing` says whether the block may write.
    """
    try:
        yield
    except exc.TimeoutError as error:
        raise Unavailable("the catalog is busy; try again") from error
    except (exc.DBAPIError, sqlite3.Error) as error:
        if _is_outage(error, writing):
            raise Unavailable("the catalog cannot be reached or is busy; try again") from error
        raise


@contextmanager
def missing_tables_translated() -> Iterator[None]:
    """Raise Unavailable if SecAdmin has not made the tables yet, or not given the rights to them.

    For the first transaction of an engine alone: later such an error is a mistake of the engine.
    """
    try:
        yield
    except exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) in _NOT_MADE:
            raise Unavailable(
                "the catalog has no tables for this engine yet: SecAdmin makes them when it starts"
            ) from error
        raise


def _is_outage(error: exc.DBAPIError | sqlite3.Error, writing: bool) -> bool:
    # SQLAlchemy does not wrap errors that occur while a new connection is set up.
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in _SQLITE_OUTAGES
    state = getattr(cause, "sqlstate", None)
    if state == _READ_ONLY:
        return writing
    return isinstance(error, exc.OperationalError | exc.InterfaceError) or (
        state in _POSTGRESQL_OUTAGES
    )
