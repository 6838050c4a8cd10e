"""The supervisor: starts again what died, gives way to others, leaves alone what keeps dying."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.files import file_lock
from deploy.processes import ManagedProcess, ProcessMark
from deploy.supervisor import HUNG_S, LONGEST_PAUSE_S, SETTLED_S, Part, Supervisor

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


class _Clock:
    """A clock that stands still unless it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ManagedProcess]:
    managed = ManagedProcess("child", tmp_path)
    yield managed
    managed.kill()


def _supervisor(process: ManagedProcess, tmp_path: Path) -> Supervisor:
    return Supervisor(tmp_path / "run.lock", [Part(process, lambda: process.start(SLEEP))])


def test_what_was_killed_is_started_again(process: ManagedProcess, tmp_path: Path) -> None:
    process.start(SLEEP)
    first = process.mark
    assert first is not None
    supervisor = _supervisor(process, tmp_path)
    supervisor.tick()
    assert process.mark == first
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait(10)
    supervisor.tick()
    assert process.mark not in (None, first)


def test_while_somebody_else_starts_or_stops_nothing_is_done(
    process: ManagedProcess, tmp_path: Path
) -> None:
    supervisor = _supervisor(process, tmp_path)
    with file_lock(tmp_path / "run.lock"):
        supervisor.tick()
        assert process.mark is None
    supervisor.tick()
    assert process.mark is not None


def test_what_keeps_dying_is_tried_ever_less_often(tmp_path: Path) -> None:
    clock, launched = _Clock(), list[float]()
    process = ManagedProcess("child", tmp_path)

    def launch() -> None:
        launched.append(clock.now)
        raise DeployError("it cannot be started")

    supervisor = Supervisor(tmp_path / "run.lock", [Part(process, launch)], clock)
    for _ in range(4 * 300):
        supervisor.tick()
        clock.now += 0.25
    pauses = [later - earlier for earlier, later in itertools.pairwise(launched)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert max(pauses) == LONGEST_PAUSE_S
    # After a time without death, as soon as at first.
    clock.now = launched[-1] + SETTLED_S + LONGEST_PAUSE_S
    supervisor.tick()
    clock.now += 1
    supervisor.tick()
    assert launched[-1] - launched[-2] == 1


def test_nothing_of_the_one_before_is_left(process: ManagedProcess) -> None:
    """As the JVM of a Spark driver that was killed."""
    child = "import subprocess, sys, time; "
    child += "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    process.start([sys.executable, "-c", child + "time.sleep(60)"])
    first = process.mark
    assert first is not None
    deadline = time.monotonic() + 10
    while len(members := _group(first.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    marks = [mark for mark in map(ProcessMark.of, members) if mark is not None]
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait(10)
    process.start(SLEEP)
    assert not any(mark.alive() for mark in marks)


def _group(number: int) -> list[int]:
    command = ["ps", "-o", "pid=", "--no-headers", "-g", str(number)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [int(word) for word in told.split()]


def test_what_says_the_same_for_too_long_is_ended(process: ManagedProcess, tmp_path: Path) -> None:
    clock, said = _Clock(), [""]
    part = Part(process, lambda: process.start(SLEEP), sign=lambda: said[0])
    supervisor = Supervisor(tmp_path / "run.lock", [part], clock)
    process.start(SLEEP)
    first = process.mark

    def watch(seconds: float) -> None:
        end = clock.now + seconds
        while clock.now < end:
            clock.now += 1.0
            supervisor.tick()

    watch(2 * HUNG_S)
    assert process.mark == first, "it is not ready yet"
    for said[0] in ("1", "2"):
        watch(HUNG_S - 1)
        assert process.mark == first
    clock.now += HUNG_S
    supervisor.tick()
    assert process.mark == first, "nobody looked meanwhile"
    watch(HUNG_S + 2)
    assert first is not None and first.wait(10)
    supervisor.tick()
    assert process.mark not in (None, first)
