"""Says before a start that another version of the platform has made the state folder."""

from __future__ import annotations

from pathlib import Path

from catalog.engine import open_engine
from catalog.errors import PlatformError
from catalog.migrations import require_known_tables
from deploy.errors import DeployError
from deploy.settings import read_overrides


def require_known_state(state: Path, settings: Path | None = None) -> None:
    """Raise DeployError if this version does not know the tables of the folder's catalog.

    Nothing in the folder is changed. SecAdmin would say the same, but only after the broker has
    started on the folder. If the operator's `settings` name another catalog, SecAdmin alone looks
    at that.
    """
    file = state / "catalog.db"
    if not file.exists() or (settings is not None and "catalog" in read_overrides(settings)):
        return
    try:
        engine = open_engine(f"sqlite:///{file.resolve()}")
        try:
            require_known_tables(engine)
        finally:
            engine.dispose()
    except PlatformError as error:
        raise DeployError(f"{file}: {error} (--state names another folder)") from error
