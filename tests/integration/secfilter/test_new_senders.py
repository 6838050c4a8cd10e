"""New senders of a group whose batches are long: they are read within seconds, and once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.engines import INGEST
from catalog.origin import origin_of
from catalog.runs import IngestRun, IngestStream
from catalog.topics import lab_topic
from secfilter.beside import side_name
from secfilter.pace import Pace
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Feed, Plane, tuple_at
from tests.integration.secfilter.running import Notes, running
from tests.integration.secfilter.test_delivery import prices

Until = Callable[[Callable[[], bool]], None]
_NAME = "ingest-1"
_SIDE = side_name(_NAME)
_LONG_MS = 60_000
# Five seconds on a machine that does nothing else.
_SOON_S = 30.0


def await_in_lab(plane: Plane, stream: IngestStream) -> None:
    """Wait until a tuple of the stream's newest sender is in lab."""
    name, sender, since = stream.relation.name, stream.senders[-1], time.monotonic()
    while sender.id not in plane.engine.positions.newest_origins([name]):
        assert time.monotonic() - since < 90, "it is not in lab"
        time.sleep(0.05)


def first_in_lab(plane: Plane, notes: Notes, run: IngestRun, stream: IngestStream) -> float:
    """Let the run be wanted, and send as the stream's newest sender; the seconds until lab."""
    began = time.monotonic()
    notes.wanted = (run,)
    plane.write(plane.producer, stream.senders[-1].topic, tuple_at(1, price=-1))
    await_in_lab(plane, stream)
    return time.monotonic() - began


def generation(plane: Plane) -> str:
    """Which checkpoint the main run has."""
    found = plane.engine.checkpoints.previous(_NAME)
    assert found is not None
    return found.folder.name


def break_off(plane: Plane, name: str) -> None:
    """End the query of that run inside its batch, as a crash does."""
    (query,) = [each for each in plane.engine.spark.streams.active if each.name == name]
    query.stop()


def all_once(plane: Plane, stream: IngestStream, count: int) -> None:
    lab = plane.read(lab_topic(stream.relation.name), count)
    origins = [origin_of(message.key()) for message in lab]
    assert len(set(origins)) == len(origins) == count, sorted(prices(lab))[:20]


@pytest.mark.parametrize(
    "crash",
    [pytest.param(False, marks=pytest.mark.long), True],
    ids=["the end of a batch", "a crash"],
)
def test_a_new_sender_and_a_new_stream_do_not_wait_for_the_end_of_a_batch(
    plane: Plane, until: Until, crash: bool
) -> None:
    plane.engine = replace(plane.engine, pace=Pace(ingest_ms=_LONG_MS, new_ms=_LONG_MS))
    three, other = plane.with_senders(plane.stream(0), 3), plane.stream(1)
    one, two = (replace(three, senders=three.senders[:n]) for n in (1, 2))
    with running(plane.engine, to_the_end=False) as notes:
        notes.wanted = (IngestRun(_NAME, (one,)),)
        old, new = (Feed(plane, each.topic, i * 1_000_000) for i, each in enumerate(two.senders))
        await_in_lab(plane, one)
        until(lambda: notes.feeds(notes.wanted[0]))
        begun = generation(plane)
        took = first_in_lab(plane, notes, run := IngestRun(_NAME, (two, other)), other)
        print(f"a new stream: {took:.1f} s")
        assert took < _SOON_S
        took = first_in_lab(plane, notes, run := IngestRun(_NAME, (three, other)), three)
        print(f"a new sender: {took:.1f} s")
        assert took < _SOON_S
        until(lambda: notes.feeds(run))
        assert generation(plane) == begun, "the main run is still in its batch"
        assert plane.engine.sides.held(_SIDE)
        if crash:
            break_off(plane, _SIDE)
            break_off(plane, _NAME)
        until(lambda: not plane.engine.sides.held(_SIDE) and notes.feeds(run))
        assert generation(plane) != begun
        sent = old.end() + new.end()
        all_once(plane, three, sent + 1)
        all_once(plane, other, 1)


@pytest.mark.long
def test_ingest_that_is_killed_while_both_runs_read_puts_nothing_into_lab_twice(
    deployment: Deployment, until: Until
) -> None:
    plane = deployment.plane
    deployment.set_pace(ingest_ms=_LONG_MS, new_ms=_LONG_MS)
    both = plane.with_senders(plane.stream(0), 2)
    alone = replace(both, senders=both.senders[:1])
    engines = deployment.start(INGEST)
    deployment.add(alone)
    feeds = [Feed(plane, each.topic, i * 1_000_000) for i, each in enumerate(both.senders)]
    await_in_lab(plane, alone)
    deployment.await_running()
    deployment.add_sender(both)
    await_in_lab(plane, both)
    assert deployment.sides.held(_SIDE), "the main run is still in its batch"
    engines.kill()
    deployment.start(INGEST)
    until(lambda: not deployment.sides.held(_SIDE))
    deployment.await_running()
    all_once(plane, both, sum(feed.end() for feed in feeds))
