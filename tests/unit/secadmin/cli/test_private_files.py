"""Files that hold secrets are their owner's from the start."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.private_file import write_private
from secadmin.cli.private_files import new_private_folder, private_folder

Modes = Callable[[Path], dict[str, str]]


def test_a_file_is_0600_whatever_the_umask(tmp_path: Path, modes: Modes) -> None:
    write_private(private_folder(tmp_path / "p") / "a", "x")
    assert modes(tmp_path / "p") == {".": "0o700", "a": "0o600"}


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_private(tmp_path / "no" / "a", "x")
    assert caught.value.filename == str(tmp_path / "no" / "a")


def test_the_file_is_private_before_anything_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    opened = os.open

    def watching(path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = opened(path, flags, mode)
        seen.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    monkeypatch.setattr(os, "open", watching)
    monkeypatch.setattr(Path, "chmod", lambda *_: pytest.fail("a mode that comes later"))
    write_private(tmp_path / "a", "secret")
    assert seen == [0o600]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("theirs")
    (tmp_path / "a").symlink_to(other)
    write_private(tmp_path / "a", "mine")
    assert other.read_text() == "theirs"
    assert (tmp_path / "a").read_text() == "mine"


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "a", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(InvalidInput, match="chmod 700"):
        private_folder(tmp_path / "open")


def test_an_access_folder_is_new_or_empty(tmp_path: Path, modes: Modes) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    new_private_folder(tmp_path / "empty")
    assert modes(tmp_path / "empty") == {".": "0o700"}
    (tmp_path / "empty" / "x").touch()
    with pytest.raises(InvalidInput, match="not empty"):
        new_private_folder(tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="not a folder"):
        new_private_folder(tmp_path / "file")
