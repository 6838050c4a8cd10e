"""The migrated tables are the models' tables."""

import os
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from catalog.audit import AuditReport, Outcome, verify
from catalog.engine import for_writing
from catalog.engines import FIRST
from catalog.errors import InvalidInput
from catalog.migrations import upgrade
from catalog.models import Base
from catalog.pulse import beat
from catalog.store import Catalog
from catalog.wanted import generation, is_in_step
from tests.audit_key import AUDIT_KEY


@pytest.mark.filterwarnings("error")
def test_the_migrations_make_what_the_models_say(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine)
    with catalog.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    catalog.close()


def test_upgrading_again_changes_nothing(catalog: Catalog) -> None:
    catalog.record("joe", "x", "y", Outcome.ALLOWED)
    upgrade(catalog.engine)
    with catalog.read() as session:
        assert verify(session, AUDIT_KEY) == AuditReport(1)


def test_the_first_tables_get_engines(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    upgrade(catalog.engine, "v0_2_1")
    with for_writing(catalog.engine).begin() as connection:
        connection.execute(text("UPDATE generation SET value = 7, applied = 7"))
        connection.execute(text("INSERT INTO heartbeats (part, beats) VALUES ('runner', 3)"))
    upgrade(catalog.engine)
    with catalog.read() as session:
        assert generation(session) == 7
        assert not is_in_step(session), "no engine has told what it uses"
    with catalog.bookkeeping() as session:
        assert beat(session, FIRST) == 1
    catalog.close()


def test_tables_of_another_version_are_refused(catalog: Catalog) -> None:
    with for_writing(catalog.engine).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    with pytest.raises(InvalidInput, match=r"another version made .* 0001"):
        upgrade(catalog.engine)


def test_no_working_directory_and_no_plain_path_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "100% %(here)s"
    folder.mkdir()
    monkeypatch.chdir(folder)
    catalog = Catalog(f"sqlite:///{folder}/catalog.db", AUDIT_KEY)
    upgrade(catalog.engine)
    catalog.record("joe", "x", "y", Outcome.ALLOWED)
    catalog.close()
    assert sorted(os.listdir(folder)) == ["catalog.db"]  # noqa: PTH208 - names are wanted
