"""Checks of a platform that `up` has started, as `up` and `down` see it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from catalog.settings import Settings
from deploy.environment import ROOT
from deploy.hints import down_command
from deploy.part_names import SUPERVISOR, part_names
from deploy.ports import free_port
from deploy.processes import ManagedProcess, ProcessMark
from deploy.readiness import healthy

COMES_BACK_S = 5.0
QUERIES = "secfilter-query-1"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python3 -m deploy` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "deploy", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def processes_of(state: Path) -> list[str]:
    """Command lines of the processes that have to do with `state`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_text().replace("\0", " ")
            folder = str((process / "cwd").readlink())
        except OSError:
            continue
        if str(state) in line or folder.startswith(str(state)):
            found.append(line)
    return found


def marks(state: Path) -> dict[str, ProcessMark | None]:
    """The running process of each part, or None."""
    return {name: ManagedProcess(name, state).mark for name in part_names()}


def comes_back_by_itself(state: Path, *options: str) -> None:
    """SecAdmin is killed; within seconds another is started, and `up` waits until it serves."""
    before = marks(state)
    killed = before["secadmin"]
    assert killed is not None
    killed.signal(signal.SIGKILL)
    assert killed.wait(10)
    deadline = time.monotonic() + COMES_BACK_S
    while (another := marks(state)["secadmin"]) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert another != killed
    up = command("up", *options)
    assert up.returncode == 0, up.stderr
    where = Settings.load(state / "settings.toml").secadmin
    assert healthy(where.host, where.port, where.ca_file)
    assert marks(state) == {**before, "secadmin": another}


def is_completed(state: Path, *options: str) -> None:
    """With a part missing and no supervisor, `up` starts these and leaves alone what runs."""
    before = marks(state)
    for name in (SUPERVISOR, QUERIES):
        ManagedProcess(name, state).kill()
    again = command("up", *options)
    assert again.returncode == 0, again.stderr
    after = marks(state)
    assert after[QUERIES] not in (None, before[QUERIES])
    assert {**after, QUERIES: before[QUERIES]} == before
    assert ManagedProcess(SUPERVISOR, state).mark is not None
    other = command("up", *options, "--secadmin-port", str(free_port()))
    assert other.returncode == 1
    assert f"`{down_command(state)}`" in other.stderr
    assert marks(state) == after
