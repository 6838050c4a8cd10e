"""Files with secrets: from the first moment only their owner can read them.

Standard library only, because `deploy` writes such files before anything is installed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PRIVATE_FILE = 0o600
"""The mode of a private file."""


def write_private(path: Path, content: str | bytes, *, synced: bool = False) -> Path:
    """Write `content` to `path` with mode 0600 in one step; returns `path`.

    Nobody sees half of it, and no link is followed that somebody else has put there. A file that is
    `synced` is on the disk when this returns.
    """
    # A temporary file has mode 0600 from the start.
    data = content.encode() if isinstance(content, str) else content
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        # Whoever reads the error knows this name, and not that of the temporary file.
        error.filename = str(path)
        raise
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            if synced:
                stream.flush()
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
