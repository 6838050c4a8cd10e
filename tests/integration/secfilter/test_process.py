"""The runner as a process: ready, alone, without secrets in sight, killed and started again."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from catalog.clearance import Clearance
from catalog.plan import Source
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Feed, prices, tuple_at, values


def command_lines(group: int) -> str:
    """The arguments of all processes of a session."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if os.getsid(int(folder.name)) == group:
                found.append((folder / "cmdline").read_text())
    return "\n".join(found)


def await_settled(deployment: Deployment, runs: int, timeout_s: float = 180.0) -> None:
    """Wait until so many runs were asked to end, to be started anew for having settled."""
    deadline = time.monotonic() + timeout_s
    while deployment.log().count("it has settled") < runs:
        assert time.monotonic() < deadline, "they have not settled"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_runners_life(deployment: Deployment) -> None:
    plane = deployment.plane
    stream = plane.with_senders(plane.stream(0), 2)
    busy, quiet = (sender.topic for sender in stream.senders)
    run = plane.query(Source(stream.relation), Clearance.of(0))
    process = deployment.start()
    deployment.add(stream, run)
    plane.write(plane.producer, quiet, tuple_at(1, "datum-7Q", 0))
    assert len(plane.read(run.classes[0].topic, 1)) == 1
    deployment.await_running()

    # Alone, and at work.
    feed = Feed(plane, busy)
    second = deployment.launch()
    assert second.wait(60) == 6

    # Nothing secret is in sight, and nothing of ours is open to others.
    arguments = command_lines(process.pid)
    password = plane.broker.secfilter.password()
    assert "org.apache.spark.deploy.SparkSubmit" in arguments
    assert password not in arguments
    checkpoints = deployment.folder / "checkpoints"
    for path in (checkpoints, *checkpoints.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path

    # Left as they are, both have settled: started anew with longer batches, under load.
    await_settled(deployment, runs=2)
    time.sleep(2)
    settled = feed.end()
    out = plane.read(run.classes[0].topic, 1 + settled)
    assert [v["price"] for v in values(out)] == [0, *range(settled)], "none lost, none repeated"

    # Killed at once and started again, under load: lab holds everything once.
    plane.write(plane.producer, quiet, tuple_at(1, "quiet", -1))
    feed = Feed(plane, busy, first=settled)
    for _ in range(2):
        time.sleep(2)
        process.kill()
        process.wait()
        process = deployment.start()
    time.sleep(2)
    sent = feed.end()
    lab = plane.read(f"lab.{stream.relation.name}", 2 + settled + sent)
    keys = [(m.value() or b"").split(b"\x1f")[1:] for m in lab]
    fed = [[b"x", str(n).encode()] for n in range(settled + sent)]
    assert [key for key in keys if key[0] != b"quiet"] == [[b"datum-7Q", b"0"], *fed]
    assert keys.count([b"quiet", b"-1"]) == 1
    everything = set[object](range(-1, settled + sent))
    assert prices(plane.read_prices(run.classes[0].topic, everything)) == everything

    # Asked to end, it ends in order.
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert set(deployment.states().values()) == {"stopped"}
    log = deployment.log()
    assert password not in log
    assert "datum-7Q" not in log
