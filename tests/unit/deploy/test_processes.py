"""Child processes: found again, told apart, and ended for certain."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.processes import LogTail, ManagedProcess, ProcessMark, last_error
from deploy.readiness import wait_until

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
time.sleep(60)
""",
]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ManagedProcess]:
    managed = ManagedProcess("child", tmp_path)
    yield managed
    managed.kill()


def _says(process: ManagedProcess, text: str) -> None:
    log = LogTail(process.log)
    log._from = 0
    wait_until(lambda: text in log.read(), process, log, 10)


def test_its_log_is_private(process: ManagedProcess) -> None:
    process.start(SLEEP)
    assert stat.S_IMODE(process.log.stat().st_mode) == 0o600
    assert stat.S_IMODE(process.log.parent.stat().st_mode) == 0o700


def test_is_found_again_by_its_mark(process: ManagedProcess, tmp_path: Path) -> None:
    process.start(SLEEP)
    again = ManagedProcess("child", tmp_path)
    assert again.mark == process.mark is not None
    again.stop()
    assert process.mark is None


def test_a_reused_id_is_not_touched(process: ManagedProcess, tmp_path: Path) -> None:
    """The mark of a process of long ago has the id of one that is not ours."""
    process.start(SLEEP)
    assert process.mark is not None
    stale = ManagedProcess("stale", tmp_path)
    ProcessMark(process.mark.pid, "1").write(tmp_path / "run" / "stale.pid")
    assert stale.mark is None
    stale.stop()
    stale.kill()
    assert process.mark is not None


def test_one_that_ignores_sigterm_is_killed(process: ManagedProcess) -> None:
    process.start(STUBBORN)
    _says(process, "up")
    process.stop(timeout_s=0.3)
    assert process.mark is None


def test_what_it_had_started_ends_too(process: ManagedProcess) -> None:
    code = (
        "import subprocess, sys, time;"
        "c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print('child', c.pid, 'up', flush=True); time.sleep(60)"
    )
    process.start([sys.executable, "-c", code])
    _says(process, "up")
    grandchild = ProcessMark.of(int(process.log.read_text().split()[1]))
    assert grandchild is not None
    process.kill()
    assert grandchild.wait(30)


def test_starting_twice_is_refused(process: ManagedProcess) -> None:
    process.start(SLEEP)
    with pytest.raises(DeployError, match=r"child already runs \(pid \d+\)"):
        process.start(SLEEP)


def test_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path;"
        "from deploy.processes import ManagedProcess;"
        f"ManagedProcess('child', Path({str(tmp_path)!r})).start({SLEEP!r});"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    mark = ProcessMark.read(tmp_path / "run" / "child.pid")
    assert mark is not None
    assert mark.wait(30)


def test_detached_outlives_its_parent(process: ManagedProcess, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from deploy.processes import ManagedProcess;"
        f"ManagedProcess('child', Path({str(tmp_path)!r})).start({SLEEP!r}, detached=True)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    time.sleep(0.2)
    assert process.mark is not None
    assert os.getsid(process.mark.pid) == process.mark.pid


def test_waiting_tells_why_it_ended(process: ManagedProcess) -> None:
    log = LogTail(process.log)
    process.start([sys.executable, "-c", "raise ValueError('no such thing')"])
    with pytest.raises(DeployError, match="child ended while starting: ValueError: no such thing"):
        wait_until(lambda: False, process, log, 10)


def test_waiting_ends(process: ManagedProcess) -> None:
    process.start(SLEEP)
    with pytest.raises(DeployError, match="not ready within 0 s"):
        wait_until(lambda: False, process, LogTail(process.log), 0.2)


def test_a_program_that_is_not_there(process: ManagedProcess) -> None:
    with pytest.raises(DeployError, match="could not be started"):
        process.start(["/nonexistent/program"], detached=True)


def test_a_long_log_is_set_aside(process: ManagedProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.processes.LOG_BYTES", 10)
    process.log.parent.mkdir()
    process.log.write_text("of an earlier run, and long enough to be set aside")
    tail = LogTail(process.log)
    process.start([sys.executable, "-c", "print('new')"])
    deadline = time.monotonic() + 5
    while tail.read() != "new\n" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert tail.read() == "new\n"
    assert process.log.with_suffix(".log.1").read_text().startswith("of an earlier run")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nERROR broken\n\tat x.Exception(y)\nbye\n", "ERROR broken"),
        ("a\nb\n\n", "b"),
        ("", "it said nothing"),
    ],
)
def test_last_error(text: str, line: str) -> None:
    assert last_error(text) == line
