"""Where sessions are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from secadmin.cli.profile import Profile, SavedSession

SESSION = SavedSession("https://localhost:8443", "alice", "token")


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"SECADMIN_CONFIG": "/p/alice", "XDG_CONFIG_HOME": "/x"}, "/p/alice"),
        ({"XDG_CONFIG_HOME": "/x"}, "/x/secadmin"),
        ({"XDG_CONFIG_HOME": "relative"}, "/home/a/.config/secadmin"),
        ({}, "/home/a/.config/secadmin"),
    ],
)
def test_the_folder(
    environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    assert Profile.of(environment).folder == Path(folder)


def test_a_session_is_kept_privately_and_forgotten(
    tmp_path: Path, modes: Callable[[Path], dict[str, str]]
) -> None:
    profile = Profile(tmp_path / "p")
    assert profile.load() is None
    profile.save(SESSION, "PEM")
    assert modes(profile.folder) == {".": "0o700", "session.json": "0o600", "ca.pem": "0o600"}
    assert profile.load() == SESSION
    profile.forget()
    assert profile.load() is None
    assert profile.ca_file is not None


def test_a_login_without_a_ca_leaves_no_former_one(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "p")
    profile.save(SESSION, "PEM")
    profile.save(SESSION, None)
    assert profile.ca_file is None


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "session.json").write_text("{")
    with pytest.raises(InvalidInput, match="delete it and log in"):
        Profile(tmp_path).load()


def test_a_repr_tells_no_token() -> None:
    assert "token" not in repr(SESSION).replace("token=", "")
