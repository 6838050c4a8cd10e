"""Child processes that outlive a command, and are never mistaken for another process.

A process is named by its id and its start time, kept in a file: an id alone may have been given
to somebody else's process by the time that we want to stop ours.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.private_file import PRIVATE_FILE, write_private
from deploy.errors import DeployError
from deploy.files import private_folder
from deploy.hints import down_command

POLL_S = 0.05
STOP_TIMEOUT_S = 90.0
KILL_TIMEOUT_S = 10.0
GROUP_TIMEOUT_S = 5.0
LOG_BYTES = 10_000_000


@dataclass(frozen=True)
class ProcessMark:
    """A process, told apart from any later one with the same id.

    Attributes:
        pid: Process id.
        started: Start time as the system tells it; only compared, never computed with.
    """

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> "ProcessMark | None":
        """The mark of the running process `pid`; None if there is none or it has ended."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return None if Path("/proc/self/stat").exists() else cls._from_ps(pid)
        except ProcessLookupError:
            return None
        # The command, in brackets, may hold blanks: count the fields after it.
        fields = stat.rpartition(")")[2].split()
        return None if _ended(pid, fields[0]) else cls(pid, fields[19])

    @classmethod
    def _from_ps(cls, pid: int) -> "ProcessMark | None":
        """For systems without /proc."""
        command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
        state, _, started = subprocess.run(
            command, capture_output=True, text=True, check=False
        ).stdout.partition(" ")
        return None if not started or state.startswith("Z") else cls(pid, started.strip())

    @classmethod
    def read(cls, path: Path) -> "ProcessMark | None":
        """The mark kept in `path`; None if there is no such file or it is unreadable."""
        try:
            pid, started = path.read_text().strip().split(" ", 1)
            return cls(int(pid), started)
        except (FileNotFoundError, ValueError):
            return None

    def write(self, path: Path) -> None:
        """Keep the mark in `path`."""
        write_private(path, f"{self.pid} {self.started}\n")

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessMark.of(self.pid) == self

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this very process; nothing happens if it has ended."""
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def wait(self, timeout_s: float) -> bool:
        """Wait until the process has ended; False if it still runs after `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        # If it was our child it is a zombie until we reap it, and keeps its group in being.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return True


def _leash() -> list[str]:
    """What to put before a command that is to end with us; nothing where there is no such thing."""
    program = shutil.which("setpriv")
    if program is None:
        return []
    # We may have ended before the signal was asked for: then another is its parent already.
    unless_too_late = 'test "$PPID" = "$0" || exit 1; exec "$@"'
    return [program, "--pdeathsig", "TERM", "sh", "-c", unless_too_late, str(os.getpid())]


def _ended(pid: int, state: str) -> bool:
    """Whether all threads are gone: a killed JVM's first thread is a zombie while the others
    still hold its ports."""
    try:
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return True
    return state in "ZX" and threads <= 1


class ManagedProcess:
    """One long-running child: started in its own session, logged to a file, marked in a file.

    Its own session, so that Ctrl-C reaches the parent alone, which stops children in order.
    """

    def __init__(self, name: str, state: Path) -> None:
        """`state` is the deployment's folder: marks go to `run/`, what it says to `logs/`."""
        self.name = name
        self._down = down_command(state)
        self.log = state / "logs" / f"{name}.log"
        self._mark_file = state / "run" / f"{name}.pid"

    @property
    def mark(self) -> ProcessMark | None:
        """The running process, or None."""
        found = ProcessMark.read(self._mark_file)
        return found if found is not None and found.alive() else None

    def require_stopped(self) -> None:
        """Raise DeployError if it runs."""
        if (running := self.mark) is not None:
            raise DeployError(
                f"{self.name} already runs (pid {running.pid}): stop it with `{self._down}`"
            )

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
        detached: bool = False,
    ) -> None:
        """Start `command`, which must hold no secret: anyone may read a process's arguments.

        Args:
            command: Program and arguments.
            environment: Variables in addition to ours.
            folder: Working folder; ours by default.
            detached: Let it outlive us. Otherwise it gets SIGTERM when the thread that called
                this ends, however it ends (where the system can do that).

        Raises:
            DeployError: It already runs, or could not be started.
        """
        self.require_stopped()
        self._clear_remains()
        for path in (self.log, self._mark_file):
            private_folder(path.parent)
        _roll(self.log)
        prefix = [] if detached else _leash()
        try:
            with open(self.log, "ab", opener=_private) as log:
                child = subprocess.Popen(
                    [*prefix, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env={**os.environ, **(environment or {})},
                    start_new_session=True,
                )
        except OSError as error:
            raise DeployError(f"{self.name} could not be started: {error}") from error
        # Nobody waits through this object: ProcessMark.wait reaps, also in a later command.
        child.returncode = 0
        if (mark := ProcessMark.of(child.pid)) is not None:
            mark.write(self._mark_file)

    def ask_to_stop(self) -> None:
        """SIGTERM, and wait for nothing."""
        if (mark := self.mark) is not None:
            mark.signal(signal.SIGTERM)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM, wait `timeout_s` seconds, then SIGKILL; of this process only."""
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._end(signal.SIGKILL, KILL_TIMEOUT_S)

    def kill_all(self) -> None:
        """SIGKILL to it and to what it has started, and wait for nothing."""
        mark = self.mark
        if mark is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(mark.pid, signal.SIGKILL)

    def become(self, other: "ManagedProcess", tell: Callable[[], object]) -> None:
        """From now on the process of `other` is this one, and `other` has none.

        `tell` lets that process know, when nothing of the one before is left. Its log becomes the
        log of this one, and the log before is set aside.

        Raises:
            DeployError: This one runs.
        """
        self.require_stopped()
        self._clear_remains()
        tell()
        other._mark_file.replace(self._mark_file)
        if self.log.exists():
            self.log.replace(_aside(self.log))
        if other.log.exists():
            other.log.replace(self.log)

    def _clear_remains(self) -> None:
        """Kill what is left of it where it died by itself: two of them would work at once."""
        found = ProcessMark.read(self._mark_file)
        # While something is left of the group, its number is given to no other process.
        if found is not None and ProcessMark.of(found.pid) is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(found.pid, signal.SIGKILL)
            _await_group(found.pid)

    def _end(self, first: signal.Signals, timeout_s: float) -> None:
        mark = ProcessMark.read(self._mark_file)
        if mark is not None and mark.alive():
            mark.signal(first)
            if not mark.wait(timeout_s):
                mark.signal(signal.SIGKILL)
                mark.wait(KILL_TIMEOUT_S)
            _await_group(mark.pid)
        self._mark_file.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read."""
    return os.open(path, flags, PRIVATE_FILE)


def _roll(log: Path) -> None:
    """Set a long log aside, in place of the one before it, so that two at most are kept."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(_aside(log))


def _aside(log: Path) -> Path:
    return log.with_suffix(".log.1")


def _await_group(group: int) -> None:
    """Wait until what the process had started (a Spark driver's JVM) has ended too; it does so by
    itself when its parent is gone, and is killed if it does not."""
    deadline = time.monotonic() + GROUP_TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(POLL_S)
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


class LogTail:
    """What is appended to a log from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._from = path.stat().st_size if path.exists() else 0

    def read(self) -> str:
        """The text since then; empty if there is no log."""
        if not self._path.exists():
            return ""
        with self._path.open(errors="replace") as stream:
            # Shorter than it was: it has been rolled, and all of it is new.
            stream.seek(self._from if os.fstat(stream.fileno()).st_size >= self._from else 0)
            return stream.read()


def last_error(text: str) -> str:
    """The last line of a log that names an error, or else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _names_error(line)]
    return (errors or lines or ["it said nothing"])[-1]


def _names_error(line: str) -> bool:
    # A line of a stack trace is where, not what.
    return not line.startswith("at ") and any(
        word in line for word in ("ERROR", "FATAL", "Exception", "Error", "error:")
    )
