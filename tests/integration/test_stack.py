"""The stack: what cannot start leaves nothing running behind."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catalog.engines import FIRST, INGEST
from deploy.environment import ROOT
from deploy.errors import DeployError
from deploy.part_names import part_names
from deploy.ports import LOOPBACK, free_port
from deploy.processes import ProcessMark
from deploy.runtime import Runtime
from deploy.stack import Stack, StackOptions
from tests.integration.kafka.clients import until


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


@pytest.mark.slow
@pytest.mark.long
def test_a_new_platform_warms_up_before_it_has_a_stream_or_a_query(
    runtime: Runtime, tmp_path: Path
) -> None:
    with Stack(StackOptions(tmp_path, broker_port=0, secadmin_port=0), runtime) as stack:
        logs = [stack.state / "logs" / f"secfilter-{each}.log" for each in (INGEST, FIRST)]
        until(lambda: all("Spark is warm after" in log.read_text() for log in logs), "it is warm")


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
