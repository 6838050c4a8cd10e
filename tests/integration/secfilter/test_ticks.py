"""Ticks move the time of streams, in the real broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import Message, Producer
from pyspark.sql.streaming.query import StreamingQuery

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.plan import Aggregation, Filter, Source, Window
from catalog.runs import IngestRun, IngestStream, QueryRun
from catalog.schema import Type
from catalog.time_source import TimeSource
from catalog.topics import ECHO_TOPIC, TICK_HEADER, lab_topic
from secfilter.after_commit import Drains
from secfilter.stream_time import echo_of
from secfilter.ticker import Ticking
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values
from tests.plans import grouped

_COUNT = (Aggregation("n", "count", None),)
_SUM = (Aggregation("n", "sum", AttributeRef("n")),)
_ALL = Clearance(Label.of(0).bits)
# The plane's tuples have their times since this time.
_ZERO_S = 1_769_860_800
_WAIT_S = 60.0
Until = Callable[[Callable[[], bool]], None]


def by_broker(stream: IngestStream) -> IngestStream:
    """The stream with the broker's time."""
    return replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))


def counting(plane: Plane, stream: IngestStream) -> QueryRun:
    """A query that counts the tuples of each second."""
    return plane.query(grouped(Source(stream.relation), Window(1_000, 1_000), (), _COUNT), _ALL)


def counts(plane: Plane, query: QueryRun, windows: int) -> list[object]:
    """What so many closed windows counted, in their order."""
    found = values(plane.read(query.classes[0].topic, windows, timeout_s=_WAIT_S))
    return [each["n"] for each in sorted(found, key=lambda each: str(each["window_start"]))]


def now() -> float:
    """The time, for `tuple_at`."""
    return time.time() - _ZERO_S


def late(query: StreamingQuery) -> int:
    """How many tuples Spark has left out as late."""
    states = [state for each in query.recentProgress for state in each.stateOperators]
    assert states
    return sum(state.numRowsDroppedByWatermark for state in states)


def ticks(plane: Plane, stream: IngestStream) -> list[Message]:
    """The ticks in the stream's lab topic."""
    records = plane.read(lab_topic(stream.relation.name), 0)
    return [record for record in records if TICK_HEADER in dict(headers(record))]


def echoes(plane: Plane, sender: int) -> int:
    """How many ticks of that sender were echoed."""
    found = [echo_of(record.value()) for record in plane.read(ECHO_TOPIC, 0)]
    return sum(echo is not None and echo.sender == sender for echo in found)


def test_a_window_closes_without_further_data(plane: Plane) -> None:
    stream = by_broker(plane.stream(0, partitions=2))
    query = counting(plane, stream)
    plane.start(IngestRun("ingest-1", (stream,)))
    running = plane.start(query)
    topic, sent = stream.senders[0].topic, now()
    # The one that is far ahead moves no time, and the last one is late.
    plane.write(plane.producer, topic, tuple_at(sent), tuple_at(sent + 30), to=0)
    plane.write(plane.producer, topic, tuple_at(sent), tuple_at(sent - 60), to=1)
    assert counts(plane, query, 1) == [2]
    (refused,) = plane.read(f"quarantine.{stream.relation.name}", 1, timeout_s=_WAIT_S)
    assert "late. It is" in dict(headers(refused))["reason"]
    assert late(running) == 0


def test_an_open_transaction_holds_time_and_loses_nothing(plane: Plane, until: Until) -> None:
    stream = by_broker(plane.with_senders(plane.stream(0), 2))
    query = counting(plane, stream)
    ingesting = plane.start(IngestRun("ingest-1", (stream,)))
    running = plane.start(query)
    one, two = stream.senders
    open_ = Producer(
        {**plane.broker.admin_config(), "transactional.id": f"t{stream.relation.name}"}
    )
    open_.init_transactions(10)
    open_.begin_transaction()
    sent = now()
    plane.write(open_, one.topic, tuple_at(sent))
    plane.write(plane.producer, two.topic, tuple_at(sent))
    heard = echoes(plane, two.id)
    until(lambda: echoes(plane, two.id) > heard + 3)
    # Ingest starts again meanwhile. Its predecessor's ticks prove nothing.
    plane.end(ingesting)
    plane.start(IngestRun("ingest-1", (stream,)))
    assert values(plane.read(query.classes[0].topic, 0)) == []
    open_.commit_transaction(10)
    assert counts(plane, query, 1) == [2]
    assert late(running) == 0


def test_a_sender_that_is_not_read_yet_holds_time(plane: Plane, until: Until) -> None:
    stream = by_broker(plane.stream(0))
    own, new = stream.senders[0].id, [987_654]
    held = replace(_ticking(plane), unfinished=lambda ids: dict.fromkeys(ids, new))
    plane.engine = replace(plane.engine, ticking=held)
    plane.start(IngestRun("ingest-1", (stream,)))
    until(lambda: echoes(plane, own) > 3)
    assert ticks(plane, stream) == []
    new.clear()
    until(lambda: ticks(plane, stream) != [])


@pytest.mark.parametrize("may_send", [True, pytest.param(False, marks=pytest.mark.long)])
def test_time_goes_on_when_nobody_may_send(plane: Plane, until: Until, may_send: bool) -> None:
    """A sender's topic is read up, although ticks come to it as long as somebody may write it."""
    stream = by_broker(plane.stream(0))
    sender = stream.senders[0]
    closed = set() if may_send else {sender.id}
    drained: set[int] = set()
    ticking = replace(_ticking(plane), draining=lambda: closed)
    drains = Drains(lambda: closed, drained.update)
    plane.engine = replace(plane.engine, ticking=ticking, drains=drains)
    plane.write(plane.producer, sender.topic, tuple_at(now()))
    plane.start(IngestRun("ingest-1", (stream,)))
    until(lambda: len(ticks(plane, stream)) > 2)
    closed.add(sender.id)
    until(lambda: drained == {sender.id})
    before = len(ticks(plane, stream))
    until(lambda: len(ticks(plane, stream)) > before)


@pytest.mark.long
def test_time_goes_on_through_outputs(plane: Plane) -> None:
    """Windows over what a filter passes, and over other windows, close without further results."""
    stream = by_broker(plane.stream(0, partitions=2))
    positive = Call(">", (AttributeRef("price"), Literal(0, Type.BIGINT)))
    passing = plane.query(Filter(Source(stream.relation), positive), _ALL, labelled=True)
    per_second = grouped(Source(passing.output), Window(1_000, 1_000), (), _COUNT)
    seconds = plane.query(per_second, _ALL, labelled=True)
    per_minute = grouped(Source(seconds.output), Window(4_000, 4_000), (), _SUM)
    minutes = plane.query(per_minute, _ALL)
    plane.start(IngestRun("ingest-1", (stream,)))
    running = [plane.start(each) for each in (passing, seconds, minutes)]
    topic, sent = stream.senders[0].topic, now()
    plane.write(plane.producer, topic, *(tuple_at(sent, price=n) for n in (0, 1, 2)), to=0)
    plane.write(plane.producer, topic, tuple_at(sent, price=3), to=1)
    assert counts(plane, seconds, 1) == [3]
    assert counts(plane, minutes, 1) == [3]
    assert late(running[1]) == late(running[2]) == 0
    # A query that has broken off gives its results again. Who read them counts them once.
    plane.break_off(running[1])
    plane.write(plane.producer, topic, tuple_at(now(), price=4), to=1)
    plane.start(seconds)
    assert counts(plane, minutes, 2) == [3, 1]


def _ticking(plane: Plane) -> Ticking:
    assert plane.engine.ticking is not None
    return plane.engine.ticking
