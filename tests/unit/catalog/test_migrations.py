"""The migrated tables are the models' tables."""

import os
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from catalog.audit import AuditReport, Outcome, verify
from catalog.migrations import upgrade
from catalog.models import Base
from catalog.store import Catalog
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
