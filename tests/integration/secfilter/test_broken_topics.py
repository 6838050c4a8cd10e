"""Topics that somebody changes by hand: their stream stands still alone, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Thread

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from pyspark.errors import StreamingQueryException

from catalog.clearance import Clearance
from catalog.plan import Aggregation, Source, Window
from catalog.runs import IngestRun, IngestStream, Run, RunReport
from secfilter.backlog import GREW
from secfilter.runner import Runner
from secfilter.topic_watch import TopicWatch
from secfilter.with_side import Starts
from tests.integration.secfilter.plane import (
    Feed,
    Plane,
    one_id_each,
    prices,
    tuple_at,
    values,
)
from tests.plans import grouped, updating

Until = Callable[[Callable[[], bool]], None]


@dataclass
class Notes:
    """What a runner is told and tells."""

    wanted: Sequence[Run] = ()
    found: Mapping[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def runs(self) -> Sequence[Run]:
        return self.wanted

    def report(self, report: RunReport) -> None:
        self.states[report.name] = report.state
        self.counts.update(report.counted)

    def applied(self) -> None: ...

    def faults(self, faults: Mapping[str, str]) -> None:
        self.found = faults

    def beat(self) -> None: ...

    def turned(self) -> None: ...


@pytest.fixture
def notes(plane: Plane) -> Iterator[Notes]:
    """A runner at work over the plane's engine."""
    made, stop = Notes(), Event()
    watch = TopicWatch(plane.engine.positions.partitions)
    engine = replace(plane.engine, note_anew=watch.note_anew)
    starts = Starts(engine.running, engine.running_side, engine.sides, engine.prepare)
    runner = Runner(made, starts, watch, pace=engine.pace)
    thread = Thread(target=runner.run, args=(stop,))
    thread.start()
    yield made
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def group_of(plane: Plane) -> tuple[IngestRun, IngestStream, IngestStream]:
    one, other = (replace(plane.stream(bit), partitions=1) for bit in (0, 1))
    return IngestRun("ingest-1", (one, other)), one, other


def lab_of(plane: Plane, stream: IngestStream, count: int) -> list[bytes]:
    """The prices in lab.<stream>, in their order."""
    found = plane.read(f"lab.{stream.relation.name}", count)
    return [(m.value() or b"").split(b"\x1f")[2] for m in found]


def delete(plane: Plane, topic: str) -> None:
    for future in plane.admin.delete_topics([topic]).values():
        future.result()


def grow(plane: Plane, *topics: str) -> None:
    """Let these have two partitions."""
    new = [NewPartitions(topic, 2) for topic in topics]
    for future in plane.admin.create_partitions(new).values():
        future.result()


@pytest.mark.parametrize("kind", ["lab", pytest.param("quarantine", marks=pytest.mark.long)])
def test_a_deleted_topic_holds_up_its_stream_alone(
    plane: Plane, notes: Notes, until: Until, kind: str
) -> None:
    run, one, other = group_of(plane)
    notes.wanted = (run,)
    plane.send(one, tuple_at(1, price=0), b"refused")
    plane.send(other, tuple_at(1, price=0))
    assert lab_of(plane, one, 1) == lab_of(plane, other, 1) == [b"0"]
    feed = Feed(plane, f"in.{other.relation.name}", first=1)
    broken = f"{kind}.{one.relation.name}"
    delete(plane, broken)
    plane.send(one, tuple_at(1, price=1), b"refused")
    until(lambda: broken in notes.found)
    count = feed.count
    until(lambda: len(lab_of(plane, other, 0)) > count)
    sent = feed.end()
    everything = [str(n).encode() for n in range(1 + sent)]
    assert lab_of(plane, other, len(everything)) == everything, "none lost, none repeated"
    plane.topics(broken)
    until(lambda: not notes.found)
    plane.send(one, tuple_at(1, price=2))
    # What had been written to the deleted topic is gone with it.
    left = [b"1", b"2"] if kind == "lab" else [b"0", b"1", b"2"]
    assert lab_of(plane, one, len(left)) == left, "it goes on once the topic is there again"


@pytest.mark.parametrize("kind", ["in", pytest.param("lab", marks=pytest.mark.long)])
def test_partitions_that_were_added_hold_up_their_stream_alone(
    plane: Plane, notes: Notes, until: Until, kind: str
) -> None:
    run, one, other = group_of(plane)
    notes.wanted = (run,)
    plane.send(one, tuple_at(1, price=0))
    assert lab_of(plane, one, 1) == [b"0"]
    feed = Feed(plane, f"in.{other.relation.name}")
    broken = f"{kind}.{one.relation.name}"
    grow(plane, broken)
    until(lambda: "2 partitions, not 1" in notes.found.get(broken, ""))
    count = feed.count
    until(lambda: len(lab_of(plane, other, 0)) > count)
    sent = feed.end()
    everything = [str(n).encode() for n in range(sent)]
    assert lab_of(plane, other, sent) == everything, "none lost, none repeated"


@pytest.mark.parametrize("kind", [pytest.param("in", marks=pytest.mark.long), "lab"])
def test_a_stream_follows_its_partitions_and_queries_do_too(
    plane: Plane, notes: Notes, until: Until, kind: str
) -> None:
    run, one, other = group_of(plane)
    notes.wanted = (run,)
    passing = plane.query(Source(one.relation), Clearance.of(0))
    number = (Aggregation("n", "count", None),)
    window = Window(10_000, 10_000)
    counting = plane.query(
        updating(grouped(Source(one.relation), window, (), number)), Clearance.of(0)
    )
    plane.send(one, tuple_at(1, price=0))
    queries = [plane.start(query) for query in (passing, counting)]
    assert prices(plane.read(passing.classes[0].topic, 1)) == {0}
    topics = [f"{each}.{one.relation.name}" for each in ("in", "lab")]
    broken = f"{kind}.{one.relation.name}"
    grow(plane, broken)
    until(lambda: broken in notes.found)
    # What is sent to a new partition meanwhile waits there.
    to = 1 if kind == "in" else 0
    # A producer that was there before would have to learn of it first.
    producer = Producer(plane.broker.admin_config())
    plane.write(producer, topics[0], tuple_at(2, price=1), to=to)

    # SecAdmin lets the other topic and the stream have as many.
    grow(plane, *(topic for topic in topics if topic != broken))
    notes.wanted = (replace(run, streams=(replace(one, partitions=2), other)),)
    until(lambda: not notes.found)
    producer = Producer(plane.broker.admin_config())
    for partition in (0, 1):
        plane.write(producer, topics[0], tuple_at(3, price=2 + partition), to=partition)
    assert sorted(lab_of(plane, one, 4)) == [b"0", b"1", b"2", b"3"], "none lost, none repeated"
    found = plane.read_prices(passing.classes[0].topic, {0, 1, 2, 3})
    assert len(one_id_each(found)) == len(found) == 4
    # In bounded batches it could not tell the order of two partitions. So it begins again without.
    with pytest.raises(StreamingQueryException, match=GREW):
        queries[1].awaitTermination(60)
    queries[1] = plane.start(counting)
    until(lambda: 4 in {v["n"] for v in values(plane.read(counting.classes[0].topic, 0))})
    assert all(query.isActive for query in queries)


@pytest.mark.long
def test_a_topic_that_was_made_anew_is_told(plane: Plane, notes: Notes, until: Until) -> None:
    run, one, other = group_of(plane)
    notes.wanted = (run,)
    plane.send(one, *(tuple_at(1, price=n) for n in range(3)))
    assert len(lab_of(plane, one, 3)) == 3
    broken = f"in.{one.relation.name}"
    delete(plane, broken)
    until(lambda: broken in notes.found)
    plane.topics(broken)
    until(lambda: "made anew" in notes.found.get(broken, ""))
    plane.send(other, tuple_at(1, price=0))
    assert lab_of(plane, other, 1) == [b"0"]


def test_what_is_refused_is_counted_for_its_stream(
    plane: Plane, notes: Notes, until: Until
) -> None:
    run, one, other = group_of(plane)
    notes.wanted = (run,)
    plane.send(one, b"refused", tuple_at(1), b"refused")
    plane.send(other, b"refused")
    wanted = {f"refused_{one.relation.object_id}": 2, f"refused_{other.relation.object_id}": 1}
    until(lambda: notes.counts == wanted)
