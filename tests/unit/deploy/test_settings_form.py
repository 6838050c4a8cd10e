"""The form of the settings: an older one is read, and a newer one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.settings import SETTINGS_FORM, Settings
from deploy.errors import DeployError
from deploy.settings import Table, read_overrides, write_settings
from tests.unit.deploy.test_settings import _local


def _without_version(table: Table) -> Table:
    return {name: value for name, value in table.items() if name != "version"}


def test_settings_say_their_form_and_older_ones_have_none(tmp_path: Path) -> None:
    table = _local(tmp_path)
    assert table["version"] == SETTINGS_FORM
    file = write_settings(table, tmp_path / "settings.toml")
    older = write_settings(_without_version(table), tmp_path / "older.toml")
    assert Settings.load(older) == Settings.load(file)


def test_an_operators_settings_do_not_change_the_form_of_the_whole(tmp_path: Path) -> None:
    own: Table = {"version": 1, "kafka": {"replication": 3}}
    table = read_overrides(write_settings(own, tmp_path / "own.toml"))
    assert table == {"kafka": {"replication": 3}}


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (
            SETTINGS_FORM + 1,
            f"has form {SETTINGS_FORM + 1}, .* up to {SETTINGS_FORM}: use the program",
        ),
        (0, "version: it must be a number from 1"),
        (True, "version: it must be a number from 1"),
        ("1", "version: it must be a number from 1"),
    ],
)
def test_settings_of_a_newer_form_are_refused(
    tmp_path: Path, version: int | str, words: str
) -> None:
    file = write_settings({**_local(tmp_path), "version": version}, tmp_path / "settings.toml")
    with pytest.raises(InvalidInput, match=f"the file {file}:? {words}"):
        Settings.load(file)
    with pytest.raises(DeployError, match=words):
        read_overrides(file)
