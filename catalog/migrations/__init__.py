"""The history of the tables (Alembic). `upgrade` needs no alembic.ini and no working directory."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from catalog.engine import for_writing
from catalog.errors import InvalidInput
from catalog.outage import outages_translated

# Any number will do, but it must be the same for all services of a deployment.
_LOCK = 7_305_004


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the tables to that revision, in one transaction. Do nothing if they have it already.

    Several services may call it at once: one goes first, and the others find nothing to do. Raises
    Unavailable if the database cannot be reached, InvalidInput for tables of an unknown version.
    """
    config = Config()
    # Config interpolates %, and the name of a folder may contain one.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with outages_translated(), for_writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        config.attributes["connection"] = connection
        _require_known(connection, config)
        command.upgrade(config, revision)


def _require_known(connection: Connection, config: Config) -> None:
    """Raise InvalidInput for tables of a revision that this version does not know."""
    found = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise InvalidInput(
            f"another version made this catalog (its tables are of revision {found}), and this "
            "version cannot read it: start with a new state folder, or with an empty database"
        )
