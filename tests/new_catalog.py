"""A catalog as a new deployment has it: made once, since that takes as long as most tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from catalog.bootstrap import ensure_initialised
from catalog.passwords import Passwords
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY

_DATABASE, _FIRST = "catalog.db", "first"


def new_catalog(folder: Path) -> Catalog:
    """An open catalog in the folder, on SQLite; the first password is in its file `first`.

    One that is there already stays as it is.
    """
    if not (folder / _DATABASE).exists():
        database, password = _made()
        for name, content in ((_DATABASE, database), (_FIRST, password)):
            file = folder / name
            file.touch(0o600)
            file.write_bytes(content)
    return Catalog(f"sqlite:///{folder}/{_DATABASE}", AUDIT_KEY)


@cache
def _made() -> tuple[bytes, bytes]:
    """The contents of both files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        catalog = Catalog(f"sqlite:///{folder}/{_DATABASE}", AUDIT_KEY)
        ensure_initialised(catalog, folder / _FIRST, Passwords(cost=4))
        with catalog.engine.connect() as connection:
            connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        catalog.close()
        return (folder / _DATABASE).read_bytes(), (folder / _FIRST).read_bytes()
