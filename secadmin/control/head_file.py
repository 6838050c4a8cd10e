"""An anchor in a file with mode 0600. Each head is one more line. There are at most two files."""

from __future__ import annotations

import fcntl
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

LIMIT_BYTES = 4 * 1024 * 1024
"""A larger file is renamed to `<name>.1`, and replaces the earlier file of that name."""
_LINE_BYTES = 1_024
_PRIVATE = 0o600


class HeadFile:
    """Keeps lines in a file. Several services may share it by a lock file."""

    place = "the file"

    def __init__(self, path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._path = path
        self._aside = path.with_name(path.name + ".1")
        self._limit = limit_bytes

    def append(self, line: bytes) -> None:
        """Write the line at the end, and wait until it is on the disk. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            self._put_aside()
            with self._opened(os.O_RDWR | os.O_APPEND) as file:
                size = os.fstat(file).st_size
                # If a crash left half a line, this line must not become a part of it.
                torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
                _write_all(file, b"\n" * torn + line + b"\n")
                os.fsync(file)

    def read(self, most: int) -> Iterator[bytes]:
        """The lines, oldest first. There are none if there is no file yet. Raises OSError."""
        newest: deque[bytes] = deque(maxlen=most)
        if not self._path.parent.is_dir():
            return iter(newest)
        with self._locked():
            for path in (self._aside, self._path):
                with suppress(FileNotFoundError), path.open("rb") as file:
                    # A very long line from somebody else must not fill the memory.
                    lines = iter(lambda file=file: file.readline(_LINE_BYTES), b"")  # type: ignore[misc]
                    newest.extend(line.strip() for line in lines if line.strip())
        return islice(newest, most)

    def close(self) -> None:
        """Do nothing, because no file stays open."""

    def _put_aside(self) -> None:
        """Begin a new file if this one is large. Without the right to rename, keep this one."""
        with suppress(OSError):
            if self._path.stat().st_size >= self._limit:
                self._path.replace(self._aside)

    @contextmanager
    def _opened(self, flags: int, path: Path | None = None) -> Iterator[int]:
        file = os.open(path or self._path, flags | os.O_CREAT | os.O_NOFOLLOW, _PRIVATE)
        try:
            yield file
        finally:
            os.close(file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._opened(os.O_RDWR, self._path.with_name(self._path.name + ".lock")) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]
