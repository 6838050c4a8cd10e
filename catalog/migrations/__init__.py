"""The history of the tables (Alembic). `upgrade` needs no alembic.ini and no working directory."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from catalog.engine import for_writing
from catalog.outage import outages_translated

# Any number; it only must be the same for all services of a deployment.
_LOCK = 7_305_004


def upgrade(engine: Engine) -> None:
    """Bring the tables to the newest revision, in one transaction; do nothing where they are.

    Safe when several services start at once: one goes first, the others find nothing to do.
    Raises Unavailable where the database is away.
    """
    config = Config()
    # Config interpolates %; a folder's name may hold one.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with outages_translated(), for_writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
