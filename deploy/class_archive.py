"""Makes the archive of Spark's classes, once: `python -m deploy.class_archive JARS`.

A rehearsal makes it (`deploy.rehearsal`), which takes the better part of a minute. So nobody waits
for it who wants to start a platform: the supervisor of a platform makes it later, in the
background, and the next start uses it. It goes on at low priority.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from deploy.environment import ROOT, find_java, pyspark_jars
from deploy.errors import DeployError
from deploy.files import file_lock
from deploy.part_names import CLASS_ARCHIVE
from deploy.processes import ManagedProcess
from secfilter.class_archive import archive_of

log = logging.getLogger("class archive")

TIMEOUT_S = 180.0
_NICE = 19
# After how long a platform begins with it. By then the first queries of a new platform run.
BEGIN_AFTER_S = 60.0


def is_made(java: Path, jars: Path) -> bool:
    """Whether the archive beside the jars was made for this Java, or could not be made for it."""
    note = _note(jars)
    return note.exists() and note.read_text() == _note_of(java)


def ensure(java: Path, jars: Path) -> None:
    """Make the archive beside the folder of Spark's jars, if there is none for this Java.

    One process at a time makes one; others wait. If it cannot be made, this is tried once only. If
    it takes too long, it is tried again. Nothing is left of an attempt that is broken off, and what
    a killed one has left is removed by the next.
    """
    with file_lock(jars.with_name("classes.lock")) as lock:
        if is_made(java, jars):
            return
        _forget(jars)
        made = archive_of(jars).with_suffix(".new")
        archive_of(jars).unlink(missing_ok=True)
        try:
            if _rehearsed(java, jars, made, lock):
                # A rename: the archive is there whole or not at all.
                made.replace(archive_of(jars))
            _note(jars).write_text(_note_of(java))
        except subprocess.TimeoutExpired:
            return
        finally:
            made.unlink(missing_ok=True)


def _rehearsed(java: Path, jars: Path, archive: Path, lock: int) -> bool:
    command = [sys.executable, "-m", "deploy.rehearsal", str(jars), str(archive)]
    rehearsal = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "JAVA_HOME": str(java.resolve().parent.parent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # If we are killed, it goes on. So it holds the lock too.
        pass_fds=(lock,),
    )
    try:
        return rehearsal.wait(TIMEOUT_S) == 0 and archive.exists()
    finally:
        # All of it at once: a Java that ends in any other way writes its archive first.
        with suppress(ProcessLookupError):
            os.killpg(rehearsal.pid, signal.SIGKILL)
        rehearsal.wait()


def _forget(jars: Path) -> None:
    """Remove archives whose Spark is gone, and what a killed attempt has left."""
    for left in jars.parent.glob(f"{jars.name}-*.new"):
        left.unlink(missing_ok=True)
    for note in jars.parent.glob(f"{jars.name}-*.made"):
        if not Path(note.read_text().partition("\n")[0]).is_dir():
            note.with_suffix(".jsa").unlink(missing_ok=True)
            note.unlink(missing_ok=True)


def _note(jars: Path) -> Path:
    return archive_of(jars).with_suffix(".made")


def _note_of(java: Path) -> str:
    """Where Spark's jars are, and what changes with Java and with Spark."""
    spark = pyspark_jars()
    files = (java.resolve(), *sorted(spark.glob("*.jar")))
    found = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return f"{spark}\n{hashlib.sha256(repr(found).encode()).hexdigest()}\n"


class ArchiveMaker:
    """Makes the archive beside a platform that runs, if there is none."""

    def __init__(
        self, state: Path, java: Path, jars: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """It begins `BEGIN_AFTER_S` seconds from now. `state` is the deployment's folder."""
        self._process = ManagedProcess(CLASS_ARCHIVE, state)
        self._java, self._jars = java, jars
        self._clock = clock
        self._due: float | None = clock() + BEGIN_AFTER_S

    def tick(self) -> None:
        """Begin, if it is time; once only."""
        if self._due is None or self._clock() < self._due:
            return
        self._due = None
        if is_made(self._java, self._jars):
            return
        log.info("making an archive of Spark's classes, for the next start")
        home = {"JAVA_HOME": str(self._java.resolve().parent.parent)}
        command = [sys.executable, "-m", "deploy.class_archive", str(self._jars)]
        try:
            self._process.start(command, home, folder=ROOT)
        except DeployError as failure:
            log.error("%s", failure)

    def stop(self) -> None:
        """Break it off, if it goes on."""
        self._process.stop()


def main(jars: Path) -> int:
    """Make the archive at the lowest priority. SIGTERM breaks it off."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.nice(_NICE)
    ensure(find_java(), jars)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
