"""Equal queries of two users run as one Spark query: the second is fed at once, from its beginning.

The first one's end changes nothing for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from catalog.clearance import Clearance
from catalog.plan import Source
from catalog.runs import FedOutput, IngestRun, QueryRun
from catalog.topics import lab_topic
from secfilter.pace import Pace
from tests.integration.secfilter.plane import Plane, prices, tuple_at
from tests.integration.secfilter.running import Notes, running

Until = Callable[[Callable[[], bool]], None]


@pytest.fixture
def notes(plane: Plane) -> Iterator[Notes]:
    plane.engine = replace(plane.engine, pace=Pace(query_ms=5_000, ingest_ms=500, new_ms=5_000))
    with running(plane.engine_of("query"), to_the_end=False) as made:
        yield made


def ends(plane: Plane, topic: str) -> dict[str, dict[str, int]]:
    """The topic's ends, as the catalog notes them when a query is added."""
    found = plane.engine_of("query").positions.ends([topic])[topic]
    return {topic: {str(partition): end for partition, end in found.items()}}


def ids(plane: Plane, topic: str, count: int) -> list[object]:
    """The ids of the records of a topic."""
    return [dict(record.headers() or [])["id"] for record in plane.read(topic, count)]


def test_two_outputs_share_a_run(plane: Plane, notes: Notes, until: Until) -> None:
    stream = plane.stream(0)
    lab = lab_topic(stream.relation.name)
    first = plane.query(Source(stream.relation), Clearance.of(0))
    plane.start(IngestRun(f"ingest-{stream.relation.name}", (stream,)))
    notes.wanted = (first,)
    plane.send(stream, tuple_at(1, price=1))
    plane.read_prices(first.classes[0].topic, {1})
    second: QueryRun = plane.query(Source(stream.relation), Clearance.of(0))
    (other,) = second.outputs
    later: FedOutput = replace(other, begins=ends(plane, lab))
    both = replace(first, outputs=(*first.outputs, later))
    notes.wanted, began = (both,), time.monotonic()
    until(lambda: notes.feeds(both))
    print(f"the second output is fed: {time.monotonic() - began:.1f} s")
    plane.send(stream, tuple_at(2, price=2))
    one, two = (each.topic for each in both.classes)
    plane.read_prices(one, {1, 2})
    plane.read_prices(two, {2})
    assert prices(plane.read(two, 1)) == {2}, "nothing from before its query was added"
    assert not {*ids(plane, one, 2)} & {*ids(plane, two, 1)}
    alone = replace(first, outputs=(later,))
    notes.wanted = (alone,)
    # Until its batch ends, the run delivers to both.
    until(lambda: one not in notes.said[first.name].topics)
    plane.send(stream, tuple_at(3, price=3))
    plane.read_prices(two, {2, 3})
    assert prices(plane.read(two, 2)) == {2, 3}
    assert 3 not in prices(plane.read(one, 2)), "the first has ended"
