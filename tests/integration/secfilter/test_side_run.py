"""New classes and readers of a query whose batches are long: fed soon, and miss nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from catalog.clearance import Clearance
from catalog.plan import Source
from catalog.runs import FanOutClass, IngestRun, IngestStream, QueryRun
from catalog.topics import out_topic
from secfilter.beside import side_name
from secfilter.going_on import owners_of
from secfilter.kafka_options import written
from secfilter.pace import Pace
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Feed, Plane, one_id_each, prices, tuple_at
from tests.integration.secfilter.running import Notes, running
from tests.outputs import with_output

Until = Callable[[Callable[[], bool]], None]
# No batch ends by itself while a test waits for the first record.
_LONG_MS = 30_000


@pytest.fixture
def notes(plane: Plane) -> Iterator[Notes]:
    """A runner at work over the plane's engine, with long batches of queries."""
    pace = Pace(query_ms=_LONG_MS, ingest_ms=500, new_ms=_LONG_MS)
    plane.engine = replace(plane.engine, pace=pace)
    with running(plane.engine_of("query"), to_the_end=False) as made:
        yield made


def with_class(plane: Plane, run: QueryRun) -> QueryRun:
    """The run with one more class, whose topic is new."""
    topic = out_topic(run.output.name, f"n{len(run.classes)}")
    plane.topics(topic)
    ends = plane.engine_of("query").positions.ends(owners_of(run))
    begins = {read: written(each) for read, each in ends.items()}
    made = FanOutClass(*(topic, Clearance.of(0)), begins=begins, made_ms=round(time.time() * 1_000))
    return with_output(run, classes=(*run.classes, made))


def last_of(run: QueryRun) -> str:
    return run.classes[-1].topic


def has_any(plane: Plane, topic: str) -> bool:
    """Whether there is a record in the topic."""
    return any(plane.engine_of("query").positions.ends([topic])[topic].values())


def begin(plane: Plane, notes: Notes, partitions: int = 1) -> tuple[IngestStream, QueryRun]:
    """A stream whose query delivers to its first class."""
    stream = plane.stream(0, partitions=partitions)
    run = plane.query(Source(stream.relation), Clearance.of(0))
    plane.start(IngestRun(f"ingest-{stream.relation.name}", (stream,)))
    notes.wanted = (run,)
    plane.send(stream, tuple_at(1, price=-1))
    plane.read_prices(last_of(run), {-1})
    return stream, run


def test_new_classes_get_all_since_they_were_made_and_readers_since_they_are_told_to_be_fed(
    plane: Plane, notes: Notes, until: Until
) -> None:
    stream, run = begin(plane, notes, partitions=2)
    feed = Feed(plane, stream.senders[0].topic)
    sides = plane.engine.sides
    side = side_name(run.name)
    promised: dict[str, int] = {}
    for _ in range(2):
        run = with_class(plane, run)
        promised[last_of(run)] = feed.count
        notes.wanted = (run,)
        until(lambda run=run: notes.feeds(run))  # type: ignore[misc]
        until(lambda run=run: has_any(plane, last_of(run)))  # type: ignore[misc]
        assert sides.unfinished(side), "the main run is still in its batch"
    run = with_output(run, labelled=True)
    reader = plane.query(Source(run.output), Clearance.of(0))
    notes.wanted, began = (run, reader), time.monotonic()
    until(lambda: notes.feeds(run))
    promised[last_of(reader)] = feed.count
    until(lambda: has_any(plane, last_of(reader)))
    print(f"a query over an output: {time.monotonic() - began:.1f} s")
    assert sides.unfinished(side), "the main run is still in its batch"
    until(lambda: not sides.unfinished(side))
    time.sleep(1)
    sent = feed.end()
    assert notes.feeds(run)
    everything = set[object](range(sent))
    for topic in (*(each.topic for each in run.classes), last_of(reader)):
        wanted = everything - set(range(promised.get(topic, 0)))
        got = plane.read_prices(topic, wanted)
        one_id_each(got)
    ids = [one_id_each(plane.read(each.topic, 0)) for each in run.classes]
    assert all(more.items() <= ids[0].items() for more in ids[1:]), "the same ids everywhere"


@pytest.mark.long
@pytest.mark.slow
def test_a_run_that_is_to_stand_still_has_no_side_run(
    plane: Plane, notes: Notes, until: Until
) -> None:
    stream, before = begin(plane, notes)
    run = with_class(plane, before)
    notes.wanted = (run,)
    until(lambda: notes.feeds(run))
    notes.wanted = ()
    until(lambda: notes.said[run.name].state == "stopped")
    plane.send(stream, tuple_at(1, price=7))
    assert 7 not in prices(plane.read(last_of(run), 0, timeout_s=2))
    notes.wanted = (run,)
    plane.read_prices(last_of(run), {7})
    until(lambda: not plane.engine.sides.unfinished(side_name(run.name)))


@pytest.mark.long
@pytest.mark.slow
def test_what_a_side_run_had_not_delivered_is_delivered_after_a_crash(
    deployment: Deployment, until: Until
) -> None:
    plane = deployment.plane
    deployment.set_pace(query_ms=_LONG_MS, new_ms=_LONG_MS)
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0))
    engines = deployment.start()
    deployment.add(stream, run)
    plane.send(stream, tuple_at(1, price=-1))
    plane.read_prices(last_of(run), {-1})
    deployment.await_running()
    feed = Feed(plane, stream.senders[0].topic)
    more = with_class(plane, run)
    promised = feed.count
    deployment.add_class(more)
    until(lambda: deployment.feeds(more))
    until(lambda: has_any(plane, last_of(more)))
    assert deployment.sides.unfinished(side_name(run.name)), "the main run is still in its batch"
    # Or it would be suspected, and run elsewhere first.
    deployment.make_old(run)
    engines.kill()
    engines = deployment.start()
    until(lambda: deployment.feeds(more))
    time.sleep(2)
    sent = feed.end()
    first, second = (each.topic for each in more.classes)
    everything = set[object](range(sent))
    all_ids = one_id_each(plane.read_prices(first, everything))
    got = one_id_each(plane.read_prices(second, everything - set(range(promised))))
    assert got.items() <= all_ids.items(), "what comes again has its id"
    until(lambda: not deployment.sides.unfinished(side_name(run.name)))
    engines.end()
