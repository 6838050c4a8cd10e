"""Engines as processes: ready, alone, without secrets in sight, killed and started again."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from catalog.clearance import Clearance
from catalog.engines import FIRST, INGEST, PROBATION
from catalog.plan import Source
from catalog.probation import DEATHS_TO_PARK
from catalog.run_state import QueryState
from catalog.runs import QueryRun
from catalog.topics import lab_topic
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import SECOND, Deployment, Engines
from tests.integration.secfilter.plane import Feed, Plane, one_id_each, prices, tuple_at, values
from tests.lanes import number_of

# Two starts of Spark and ten of queries, where a trial of each one would take half a minute.
BACK_S = 90
KILLS = 2


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


@pytest.mark.long
@pytest.mark.slow
def test_the_engines_lives(deployment: Deployment) -> None:
    plane = deployment.plane
    stream = plane.with_senders(plane.stream(0), 2)
    busy, quiet = (sender.topic for sender in stream.senders)
    run = plane.query(Source(stream.relation), Clearance.of(0))
    engines = deployment.start()
    deployment.add(stream, run)
    plane.write(plane.producer, quiet, tuple_at(1, "datum-7Q", 0))
    assert len(plane.read(run.classes[0].topic, 1)) == 1
    deployment.await_running()

    # Alone, and at work.
    feed = Feed(plane, busy)
    for name in engines.processes:
        assert deployment.launch(name).wait(60) == 6

    # Nothing secret is in sight, and nothing of ours is open to others.
    passwords = plane.broker.ingest.password(), plane.broker.query.password()
    for process in engines.processes.values():
        arguments = command_lines(process.pid)
        assert "org.apache.spark.deploy.SparkSubmit" in arguments
        assert not any(password in arguments for password in passwords)
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
    for _ in range(KILLS):
        time.sleep(2)
        engines.kill()
        engines = deployment.start(INGEST, FIRST, PROBATION)
    time.sleep(2)
    sent = feed.end()
    lab = plane.read(f"lab.{stream.relation.name}", 2 + settled + sent)
    keys = [(m.value() or b"").split(b"\x1f")[1:] for m in lab]
    fed = [[b"x", str(n).encode()] for n in range(settled + sent)]
    assert [key for key in keys if key[0] != b"quiet"] == [[b"datum-7Q", b"0"], *fed]
    assert keys.count([b"quiet", b"-1"]) == 1
    everything = set[object](range(-1, settled + sent))
    assert prices(plane.read_prices(run.classes[0].topic, everything)) == everything

    # Once its query is removed, nothing is left of what it has read.
    assert list(checkpoints.glob("query-*"))
    deployment.remove(run)
    await_true(lambda: not list(checkpoints.glob("query-*")), "its checkpoint is deleted")
    assert list(checkpoints.glob("ingest-*"))

    # Asked to end, it ends in order.
    engines.end()
    assert set(deployment.states().values()) == {"stopped"}
    log = deployment.log()
    assert not any(password in log for password in passwords)
    assert "datum-7Q" not in log


@embedded_only
@pytest.mark.slow
@pytest.mark.long
def test_an_engine_that_has_nothing_to_run_yet_warms_up(deployment: Deployment) -> None:
    plane = deployment.plane
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0))
    engines = deployment.start(INGEST, FIRST)
    warm = "Spark is warm after"
    await_true(lambda: deployment.log().count(warm) == 2, "both are warm")
    await_true(lambda: not [*deployment.folder.rglob("warm-up")], "it has cleared up")
    deployment.add(stream, run)
    plane.send(stream, tuple_at(1, "x", 1))
    assert len(plane.read(run.classes[0].topic, 1)) == 1
    engines.end()
    # Then it has something to run from the beginning.
    engines = deployment.start(INGEST, FIRST)
    plane.send(stream, tuple_at(2, "x", 2))
    assert len(plane.read(run.classes[0].topic, 2)) == 2
    engines.end()
    assert deployment.log().count(warm) == 2 and "Spark is not warm" not in deployment.log()


@embedded_only
@pytest.mark.slow
@pytest.mark.long
def test_what_kills_its_engine_is_parked_and_harms_nobody(deployment: Deployment) -> None:
    """Whenever the one query runs alone, its engine is killed; the test starts engines again."""
    plane = deployment.plane
    stream = plane.stream(0)
    count = 2 + number_of("SUSPECTS", sample=3, long=10)
    runs = [plane.query(Source(stream.relation), Clearance.of(0)) for _ in range(count)]
    good, other, bad, *young = runs
    deployment.set_engines(2)
    deployment.set_pace(settle_ms=600_000)
    engines = deployment.start(INGEST, FIRST, SECOND, PROBATION)
    deployment.add(stream, good, bad, *young, apart=[other])
    plane.send(stream, tuple_at(1, "x", 0))
    deployment.await_running()
    deployment.make_old(good)
    deployment.distrust(bad)
    feed = Feed(plane, stream.senders[0].topic, first=1)

    # Ingest and the other query engine go on while one is away.
    engines.kill(FIRST)
    await_more(plane, lab_topic(stream.relation.name), other.classes[0].topic)

    # All that are suspected are back together.
    engines.join(Engines({FIRST: deployment.launch(FIRST)}))
    launched = time.monotonic()
    await_true(lambda: deployment.run_in(PROBATION, (bad, *young)), "the suspected are back")
    assert time.monotonic() - launched < BACK_S, "one after the other would take minutes"
    await_more(plane, *(run.classes[0].topic for run in (good, bad, *young)), count=1)

    # The one that is alone dies alone; its neighbour runs on.
    deployment.stop(*young)
    await_true(lambda: deployment.have_left(PROBATION, young), "it is alone")
    for _ in range(DEATHS_TO_PARK):
        await_state(deployment, bad, "running")
        engines.kill(PROBATION)
        await_more(plane, good.classes[0].topic)
        engines.join(deployment.start(PROBATION))
    state = await_state(deployment, bad, "failed")
    assert "ended 3 times while it ran alone" in state.message
    assert deployment.told(good).state == "running"

    sent = 1 + feed.end()
    everything = set[object](range(sent))
    for run in (good, other):
        out = plane.read_prices(run.classes[0].topic, everything)
        assert one_id_each(out).keys() == everything, "what comes again has its id"
    assert len(out) == sent, "where nothing died, nothing comes again"
    assert len(plane.read(lab_topic(stream.relation.name), sent)) == sent, "ingest repeats nothing"


def await_more(plane: Plane, *topics: str, count: int = 300) -> None:
    """Wait until so many more records are in each of the topics, while more are sent."""

    def there() -> list[int]:
        ends = plane.of_queries.positions.ends(topics)
        return [sum(ends[topic].values()) for topic in topics]

    wanted = [found + count for found in there()]
    # On a busy machine several queries at once need a minute and a half to be planned and compiled.
    deadline = time.monotonic() + 180
    while any(found < least for found, least in zip(there(), wanted, strict=True)):
        assert time.monotonic() < deadline, f"no more arrives in some of {topics}"
        time.sleep(0.05)


def await_all(plane: Plane, *topics: str, count: int, pause_s: float = 90) -> None:
    """Wait until so many records are in each of the topics, for as long as more come.

    How fast they come depends on the machine, and is no matter of this.
    """
    before, since = -1, time.monotonic()
    while True:
        ends = plane.of_queries.positions.ends(topics)
        found = [sum(ends[topic].values()) for topic in topics]
        if min(found) >= count:
            return
        if sum(found) > before:
            before, since = sum(found), time.monotonic()
        assert time.monotonic() < since + pause_s, f"no more comes; of {count} came {found}"
        time.sleep(0.5)


def await_true(holds: Callable[[], bool], what: str) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline, f"not yet: {what}"
        time.sleep(0.05)


def await_state(deployment: Deployment, run: QueryRun, state: str) -> QueryState:
    """Wait until people are told that the query is in that state."""
    deadline = time.monotonic() + 90
    while (told := deployment.told(run)).state != state:
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
    return told
