"""The stack: what cannot start leaves nothing running behind."""

import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catalog.settings import Settings
from deploy.environment import ROOT
from deploy.errors import DeployError
from deploy.part_names import SUPERVISOR, part_names
from deploy.ports import LOOPBACK, free_port
from deploy.processes import ManagedProcess, ProcessMark
from deploy.readiness import healthy
from deploy.runtime import Runtime
from deploy.stack import Stack, StackOptions
from deploy.stopping import stop_all

COMES_BACK_S = 5.0
QUERIES = "secfilter-query-1"


def _running(state: Path) -> list[str]:
    marks = {name: ProcessMark.read(state / "run" / f"{name}.pid") for name in part_names()}
    return [name for name, mark in marks.items() if mark is not None and mark.alive()]


def test_a_failure_half_way_stops_what_was_started(runtime: Runtime, tmp_path: Path) -> None:
    """SecAdmin's port is taken, which is found out when the broker already runs."""
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        stack = Stack(StackOptions(tmp_path, broker_port=0, secadmin_port=port), runtime)
        with pytest.raises(DeployError, match=rf"port {port} for SecAdmin .* --secadmin-port"):
            stack.start()
    assert stack.broker is not None
    assert stack.settings.kafka.users_bootstrap == stack.broker.bootstrap
    assert _running(tmp_path) == []


def test_with_another_kafka_there_is_no_broker(runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[kafka]\nbootstrap = "elsewhere:9093"\nca_file = "ca.pem"\n')
    stack = Stack(StackOptions(tmp_path / "state", settings=file), runtime)
    assert stack.broker is None


def test_an_interrupted_start_leaves_nothing(tmp_path: Path) -> None:
    """SIGTERM while the broker starts, as a shell or a supervisor sends it."""
    command = [sys.executable, "-m", "deploy", "up", "--state", str(tmp_path)]
    port = free_port()
    command += ["--port", str(port), "--secadmin-port", str(free_port(port))]
    starting = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while _running(tmp_path) == [] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _running(tmp_path) == ["broker"]
    starting.send_signal(signal.SIGTERM)
    _, said = starting.communicate(timeout=60)
    assert starting.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in said
    assert _running(tmp_path) == []


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deploy", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def _of(state: Path) -> list[str]:
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


def _marks(state: Path) -> dict[str, ProcessMark | None]:
    return {name: ManagedProcess(name, state).mark for name in part_names()}


def _comes_back_by_itself(state: Path, *options: str) -> None:
    """SecAdmin is killed; within seconds another is started, and `up` waits until it serves."""
    before = _marks(state)
    killed = before["secadmin"]
    assert killed is not None
    killed.signal(signal.SIGKILL)
    assert killed.wait(10)
    deadline = time.monotonic() + COMES_BACK_S
    while (another := _marks(state)["secadmin"]) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert another != killed
    up = _command("up", *options)
    assert up.returncode == 0, up.stderr
    where = Settings.load(state / "settings.toml").secadmin
    assert healthy(where.host, where.port, where.ca_file)
    assert _marks(state) == {**before, "secadmin": another}


def _is_completed(state: Path, *options: str) -> None:
    """With a part missing and no supervisor, `up` starts these and leaves alone what runs."""
    before = _marks(state)
    for name in (SUPERVISOR, QUERIES):
        ManagedProcess(name, state).kill()
    again = _command("up", *options)
    assert again.returncode == 0, again.stderr
    after = _marks(state)
    assert after[QUERIES] not in (None, before[QUERIES])
    assert {**after, QUERIES: before[QUERIES]} == before
    assert ManagedProcess(SUPERVISOR, state).mark is not None
    other = _command("up", *options, "--secadmin-port", str(free_port()))
    assert other.returncode == 1
    assert f"`python3 -m deploy down {shlex.join(options)}`" in other.stderr
    assert _marks(state) == after


def test_up_then_down_with_all_parts(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path))
    port = free_port()
    ports = ("--port", str(port), "--secadmin-port", str(free_port(port)))
    hint = f"python3 -m deploy down --state {tmp_path}"
    try:
        up = _command("up", *state, *ports)
        assert up.returncode == 0, up.stderr
        assert "The platform is up." in up.stdout
        assert sorted(_running(tmp_path)) == sorted(part_names())
        assert up.stdout.splitlines()[-1].strip() == hint
        _comes_back_by_itself(tmp_path, *state)
        _is_completed(tmp_path, *state)
        assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700
    finally:
        down = _command(*shlex.split(hint)[3:])
    engines = "secfilter-query-1, secfilter-probation, secfilter-ingest"
    assert down.stdout == f"stopped: supervisor, {engines}, secadmin, broker\n"
    assert "ends with its batch" in down.stderr
    assert _of(tmp_path) == []
    assert stop_all(tmp_path) == []
