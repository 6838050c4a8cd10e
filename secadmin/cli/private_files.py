"""Folders with secrets. From the first moment only their owner can read them."""

from __future__ import annotations

import os
from pathlib import Path

from catalog.errors import InvalidInput

_FILE, _FOLDER = 0o600, 0o700
_OTHERS_WRITE = 0o022


def private_folder(path: Path) -> Path:
    """Make the folder with mode 0700, or check that an existing one is safe. Gives `path`.

    An existing folder keeps its mode, because it may be a home folder.

    Raises:
        InvalidInput: It belongs to somebody else, or others may put files into it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=_FOLDER)
    except FileExistsError:
        _check_folder(path)
    return path


def _check_folder(path: Path) -> None:
    if not path.is_dir():
        raise InvalidInput(f"{path} is not a folder; name another")
    check_own(path)


def check_own(path: Path) -> None:
    """Raise InvalidInput if the path belongs to somebody else, or if others can write to it."""
    status = path.stat()
    if status.st_uid != os.geteuid():
        raise InvalidInput(f"{path} belongs to somebody else; name another")
    if status.st_mode & _OTHERS_WRITE:
        mode = _FOLDER if path.is_dir() else _FILE
        raise InvalidInput(f"others can write to {path}; close it: chmod {mode:o} {path}")


def new_private_folder(path: Path) -> Path:
    """Make the folder, or take an existing empty one, with mode 0700. Gives `path`.

    Raises:
        InvalidInput: There is something in it, it is a file, or it belongs to somebody else.
    """
    private_folder(path)
    if any(path.iterdir()):
        raise InvalidInput(f"the folder {path} is not empty; name a new one")
    path.chmod(_FOLDER)
    return path
