"""Files and folders that only their owner may read, written so that no half file is ever seen."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.private_file import write_private
from deploy.errors import DeployError

PRIVATE_FOLDER = 0o700


def private_folder(path: Path) -> Path:
    """Make `path` (and its parents) and close it to everyone but its owner; returns it.

    Raises:
        DeployError: There is a file at its place, or at that of one of its parents.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    except (FileExistsError, NotADirectoryError):
        raise DeployError(f"{path} cannot be a folder: there is a file; name another one") from None
    # mkdir leaves the mode of a folder that was already there.
    path.chmod(PRIVATE_FOLDER)
    return path


def secret_file(path: Path, size: int = 32) -> Path:
    """Make `path` hold `size` random bytes as hexadecimal text, unless it is already there."""
    if not path.exists():
        private_folder(path.parent)
        write_private(path, secrets.token_hex(size))
    return path


@contextmanager
def file_lock(path: Path) -> Iterator[int]:
    """Hold an exclusive lock on `path` while the block runs; others wait.

    The kernel frees the lock when the holder ends, however it ends. Gives the file's descriptor:
    a child process that gets it holds the lock too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream.fileno()


@contextmanager
def try_file_lock(path: Path) -> Iterator[bool]:
    """As `file_lock`, but never wait; gives whether the lock is held."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
