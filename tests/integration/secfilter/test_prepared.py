"""What was prepared for a query is used if it fits, and is thrown away if it does not."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Source
from catalog.runs import FanOutClass, IngestRun, QueryRun, fused
from catalog.topics import out_topic
from secfilter.query_frames import Place, QueryFrames
from secfilter.running_query import RunningQuery
from tests.integration.secfilter.plane import Plane, prices, tuple_at
from tests.outputs import with_output


def with_class(plane: Plane, run: QueryRun) -> QueryRun:
    topic = out_topic(run.output.name, "new")
    plane.topics(topic)
    return with_output(run, classes=(*run.classes, FanOutClass(topic, Clearance.of(0), id=2)))


def test_a_query_goes_on_with_what_was_prepared(plane: Plane) -> None:
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0))
    engine = plane.engine_of(run.name)
    engine.prepare(run)
    assert engine.built == {}, "it has no checkpoint yet"
    plane.start(IngestRun("ingest-1", (stream,)))
    query = plane.start(run)
    plane.send(stream, tuple_at(1, price=1))
    plane.read_prices(run.classes[0].topic, {1})
    more = with_class(plane, run)
    engine.prepare(more)
    built = engine.built[run.name]
    assert built.run == more
    plane.end(query)
    query = plane.start(more)
    assert engine.built == {}
    plane.send(stream, tuple_at(2, price=2))
    assert prices(plane.read_prices(more.classes[1].topic, {2})) == {2}

    # Before the next start, the reach of the stream has grown. So the label of the tuple would be
    # invisible to what was prepared.
    engine.prepare(more)
    plane.end(query)
    grown = Label.of(0, 70)
    wider = replace(more, reaches={stream.relation.object_id: grown})
    plane.start(wider)
    assert engine.built == {}
    plane.send(stream, tuple_at(3, price=3))
    plane.read_prices(more.classes[1].topic, {2, 3})


def _end(running: RunningQuery) -> None:
    running.request_stop()
    deadline = time.monotonic() + 60.0
    while not running.ended():
        assert time.monotonic() < deadline, "the query did not end"
        time.sleep(0.02)


@pytest.mark.long
def test_a_fused_run_without_one_of_its_members_goes_on_with_what_was_prepared(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = plane.stream(0)
    zero, one, two = (plane.query(Source(stream.relation), Clearance.of(0)) for _ in range(3))
    engine = plane.engine_of("query")
    plane.start(IngestRun("ingest-1", (stream,)))
    running = engine.running(fused("fused-1", (zero, one, two)), settled=True)
    topic = one.classes[0].topic
    plane.send(stream, tuple_at(1, price=1))
    plane.read_prices(topic, {1})
    fewer = fused("fused-1", (zero, one))
    engine.prepare(fewer)
    # It reads on, so its members have come further when it ends.
    plane.send(stream, tuple_at(2, price=2))
    plane.read_prices(topic, {1, 2})
    _end(running)

    def build(_self: QueryFrames, _run: QueryRun, _place: Place) -> None:
        raise AssertionError("it is built already")

    monkeypatch.setattr(QueryFrames, "_build", build)
    running = engine.running(fewer, settled=True)
    plane.send(stream, tuple_at(3, price=3))
    assert len(plane.read_prices(topic, {1, 2, 3})) == 3, "nothing comes twice"
    plane.read_prices(zero.classes[0].topic, {1, 2, 3})
    assert len(plane.read(two.classes[0].topic, 2)) == 2
    _end(running)
