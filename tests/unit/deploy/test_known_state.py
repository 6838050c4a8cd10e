"""`up` on the state folder of another version: one line says what to do, and nothing is changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from catalog.migrations import upgrade
from catalog.store import Catalog
from deploy import environment
from deploy.__main__ import main
from deploy.errors import DeployError
from tests.audit_key import AUDIT_KEY

# What version 0.1 wrote. It had one Kafka account for all engines.
_SETTINGS = """\
[catalog]
url = "sqlite:///{state}/catalog.db"
[kafka]
bootstrap = "localhost:19092"
ca_file = "{state}/certificates/ca.pem"
replication = 1
[kafka.secadmin]
username = "secadmin"
password_file = "{state}/secrets/secadmin.password"
[kafka.secfilter]
username = "secfilter"
password_file = "{state}/secrets/secfilter.password"
[secadmin]
host = "127.0.0.1"
port = 18443
certificate_file = "{state}/certificates/secadmin.pem"
key_file = "{state}/certificates/secadmin.key"
ca_file = "{state}/certificates/ca.pem"
first_password_file = "{state}/secrets/first-administrator.password"
[secfilter]
master = "local[256]"
jars = "{state}/jars"
checkpoints = "{state}/checkpoints"
id_key_file = "{state}/secrets/result-id.key"
"""
_REVISION = "0001"
_STARTS = "the start goes on"


@pytest.fixture(autouse=True)
def _starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes behind the look at the folder ends the command."""

    def end() -> None:
        raise DeployError(_STARTS)

    monkeypatch.setattr("deploy.commands.ensure_runtime", end)
    monkeypatch.setattr(environment, "enter", lambda _: None)


def folder_of(revision: str, state: Path) -> Path:
    state.mkdir(mode=0o700)
    (state / "settings.toml").write_text(_SETTINGS.format(state=state))
    with closing(sqlite3.connect(state / "catalog.db")) as catalog, catalog:
        catalog.execute("PRAGMA journal_mode = WAL")
        catalog.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        catalog.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
    return state


def said_by_up(state: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What the command says when it fails. It is one line."""
    assert main(["up", "--state", str(state), *options]) == DeployError.exit_code
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err.removeprefix("error: ").rstrip()


# An older version, and a newer one.
@pytest.mark.parametrize("revision", [_REVISION, "v9_9_9"])
def test_the_folder_of_another_version_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    state = folder_of(revision, tmp_path / "state")
    before = {file.name: file.read_bytes() for file in state.iterdir()}
    assert said_by_up(state, capsys) == (
        f"{state}/catalog.db: another version made this catalog (its tables are of revision "
        f"{revision}), and this version cannot read it: start with a new state folder, or with an "
        "empty database (--state names another folder)"
    )
    assert {file.name: file.read_bytes() for file in state.iterdir()} == before


def test_a_folder_of_this_version_and_a_new_one_are_not_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said_by_up(tmp_path / "new", capsys) == _STARTS
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY)
    # Without tables, as after a start that was cut off; then older ones; then those of today.
    for revision in (None, "v0_2_7", "head"):
        if revision is not None:
            upgrade(catalog.engine, revision)
        assert said_by_up(tmp_path, capsys) == _STARTS
    catalog.close()


def test_a_catalog_that_is_not_used_is_not_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, settings = folder_of(_REVISION, tmp_path / "state"), tmp_path / "own.toml"
    kafka = '[kafka]\nbootstrap = "elsewhere:9093"\nca_file = "ca.pem"\n'
    settings.write_text(f'{kafka}[catalog]\nurl = "postgresql://elsewhere/catalog"\n')
    assert said_by_up(state, capsys, "--settings", str(settings)) == _STARTS
    settings.write_text(kafka)
    assert f"revision {_REVISION}" in said_by_up(state, capsys, "--settings", str(settings))
