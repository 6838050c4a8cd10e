"""A spare engine takes the place of an engine that has died, with what ran there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from catalog.clearance import Clearance
from catalog.engines import FIRST, INGEST, PROBATION
from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import Filter, Source
from catalog.runs import QueryRun
from catalog.schema import Type
from catalog.topics import lab_topic
from secfilter.spare import SPARE, SPARE_FILE, Given, asking_file, give
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Feed, one_id_each, tuple_at
from tests.integration.secfilter.test_process import (
    await_all,
    await_more,
    await_state,
    await_true,
)

QUERIES = 10
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(session: int) -> float:
    """The CPU time of all processes of a session, in seconds."""
    total = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if os.getsid(int(folder.name)) == session:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def give_spare(deployment: Deployment, engine: str) -> None:
    """Do what the supervisor does when that engine has asked and ended."""
    asks = asking_file(deployment.ready_file(engine))
    assert asks.exists()
    asks.unlink()
    give(deployment.ready_file(SPARE), Given(engine, str(deployment.ready_file(engine))))


def killed(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its Spark, as the supervisor leaves it."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@embedded_only
@pytest.mark.slow
@pytest.mark.long
def test_a_spare_takes_over_what_runs_and_what_is_on_trial(deployment: Deployment) -> None:
    plane = deployment.plane
    stream = plane.stream(0)
    price = AttributeRef("price")
    # Equal queries would run once.
    runs = [
        plane.query(
            Filter(Source(stream.relation), Call(">", (price, Literal(-n, Type.BIGINT)))),
            Clearance.of(0),
        )
        for n in range(1, QUERIES + 1)
    ]
    topics = [run.classes[0].topic for run in runs]
    # Ten queries that each plan a batch every half second leave two slow cores no time for tuples.
    deployment.set_pace(settle_ms=600_000, new_ms=5_000)
    deployment.environment[SPARE_FILE] = str(deployment.ready_file(SPARE))
    engines = deployment.start(INGEST, FIRST, PROBATION)
    deployment.add(stream, *runs)
    plane.send(stream, tuple_at(1, "x", 0))
    deployment.await_running()
    feed = Feed(plane, stream.senders[0].topic, first=1)
    await_more(plane, *topics, count=1)

    figures: dict[str, tuple[float, float]] = {}

    def back(how: str, process: subprocess.Popen[bytes], since_s: float, before: float) -> None:
        await_more(plane, *topics, count=1)
        for run in runs:
            await_state(deployment, run, "running")
        figures[how] = time.monotonic() - since_s, cpu_s(process.pid) - before

    # Without a spare.
    _make_old(deployment, runs)
    killed(engines.processes[FIRST])
    began = time.monotonic()
    running = deployment.launch(FIRST)
    back("without a spare", running, began, 0.0)

    # The spare becomes the engine: its queries have not changed lately.
    _make_old(deployment, runs)
    spare = deployment.launch_spare()
    before = cpu_s(spare.pid)
    killed(running)
    began = time.monotonic()
    assert deployment.launch(FIRST).wait(60) == 0, "it gives way to the spare"
    give_spare(deployment, FIRST)
    back("with a spare", spare, began, before)
    assert deployment.run_in(FIRST, runs)
    running = spare

    # What is young goes on trial. So `probation` needs the spare, and not the engine that died.
    _make_young(deployment, runs)
    spare = deployment.launch_spare()
    before = cpu_s(spare.pid)
    killed(running)
    began = time.monotonic()
    first = deployment.launch(FIRST)
    assert engines.processes[PROBATION].wait(60) == 0
    give_spare(deployment, PROBATION)
    back("with a spare, on trial", spare, began, before)
    await_true(lambda: deployment.run_in(FIRST, runs), "they have gone home")
    assert first.poll() is None

    # After its trials the former spare waits without Spark, and can ask for another one.
    def waits() -> bool:
        left = _session(spare.pid)
        return len(left) == 1 and f"--engine {PROBATION}" in left[0]

    await_true(waits, "its Spark has ended, and it is the engine that it stands for")
    spare.send_signal(signal.SIGTERM)
    assert spare.wait(60) == 0

    print(figures)
    sent = 1 + feed.end()
    await_all(plane, *topics, count=sent)
    everything = set[object](range(sent))
    for run in runs:
        out = plane.read_prices(run.classes[0].topic, everything)
        assert one_id_each(out).keys() == everything, "nothing is lost, repeats have equal ids"
    assert len(plane.read(lab_topic(stream.relation.name), sent)) == sent


def _session(number: int) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if os.getsid(int(folder.name)) == number:
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found


def _make_old(deployment: Deployment, runs: Sequence[QueryRun]) -> None:
    for run in runs:
        deployment.make_old(run)


def _make_young(deployment: Deployment, runs: Sequence[QueryRun]) -> None:
    for run in runs:
        deployment.make_young(run)
