"""Makes the archive of Spark's classes, once, by a rehearsal (`deploy.rehearsal`)."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from deploy.environment import ROOT, pyspark_jars
from deploy.files import file_lock
from secfilter.class_archive import archive_of

TIMEOUT_S = 180.0


def is_made(java: Path, jars: Path) -> bool:
    """Whether the archive beside the jars was made for this Java, or could not be made for it."""
    note = _note(jars)
    return note.exists() and note.read_text() == _key(java)


def ensure(java: Path, jars: Path) -> None:
    """Make the archive beside the folder of Spark's jars, if there is none for this Java.

    If it cannot be made, this is tried once only. If it takes too long, it is tried again.
    """
    with file_lock(jars.with_name("classes.lock")):
        if is_made(java, jars):
            return
        made = archive_of(jars).with_suffix(".new")
        archive_of(jars).unlink(missing_ok=True)
        try:
            if _rehearsed(java, jars, made):
                # A rename: the archive is there whole or not at all.
                made.replace(archive_of(jars))
            _note(jars).write_text(_key(java))
        except subprocess.TimeoutExpired:
            return


def _rehearsed(java: Path, jars: Path, archive: Path) -> bool:
    command = [sys.executable, "-m", "deploy.rehearsal", str(jars), str(archive)]
    environment = {**os.environ, "JAVA_HOME": str(java.resolve().parent.parent)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    return done.returncode == 0 and archive.exists()


def _note(jars: Path) -> Path:
    return archive_of(jars).with_suffix(".made")


def _key(java: Path) -> str:
    """Changes with Java and with Spark."""
    files = (java.resolve(), *sorted(pyspark_jars().glob("*.jar")))
    found = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr(found).encode()).hexdigest()
