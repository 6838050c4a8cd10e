"""Upserts on the real broker: who comes later gets first the rows that stand."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from confluent_kafka import Message

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    Moving,
    MovingWindow,
    Project,
    Source,
    ToStream,
    Union,
)
from catalog.runs import IngestRun, IngestStream, QueryRun
from catalog.schema import Type
from catalog.time_source import TimeSource
from catalog.upserts import newest_of_each
from secfilter.kafka_options import written
from tests.integration.secfilter.plane import Plane, headers, tuple_at

_ZERO_S = 1_769_860_800
_WAIT_S = 60.0
_DAY_MS = 86_400_000
_NUMBER = AttributeRef("n")


def by_ticks(plane: Plane, bit: int) -> IngestStream:
    stream = plane.stream(bit)
    return replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))


def send(plane: Plane, stream: IngestStream, *keys: str) -> None:
    """Send tuples of now, a millisecond apart."""
    now = time.time() - _ZERO_S
    plane.send(stream, *(tuple_at(now + n / 1_000, key) for n, key in enumerate(keys)))


def totals(*streams: IngestStream) -> ToStream:
    """How many tuples each key has in all streams together."""
    sources = tuple(Source(each.relation) for each in streams)
    below = sources[0] if len(sources) == 1 else Union(sources)
    keys = (Column("key", AttributeRef("key")),)
    count = (Aggregation("n", "count", None),)
    return ToStream(Aggregate(Moving(below, MovingWindow()), keys, count), Change.UPSERT)


def fed(run: QueryRun, classes: int, *readers: int) -> QueryRun:
    """The run for its first so many classes, and for these queries that read it."""
    (output,) = run.outputs
    made = replace(
        output,
        classes=output.classes[:classes],
        labelled=bool(readers),
        readers=frozenset(readers),
        kept_ms=_DAY_MS,
    )
    return replace(run, outputs=(made,))


def kept(messages: list[Message]) -> Mapping[str, int | None]:
    """The newest number of each key, as a subscriber keeps it. None: it was deleted.

    No version may go back.
    """
    found: dict[str, int | None] = {}
    versions: dict[str, int] = {}
    for each in messages:
        key = json.loads(each.key() or b"")["key"]
        version = int(dict(headers(each))["row-version"])
        assert version >= versions.get(key, version), "a version went back"
        value = each.value()
        found[key] = None if value is None else json.loads(value)["n"]
        versions[key] = version
    return found


def await_kept(plane: Plane, topic: str, wanted: Mapping[str, int | None]) -> list[Message]:
    return plane.read_until(topic, lambda found: kept(found) == wanted, timeout_s=_WAIT_S)


@pytest.mark.long
def test_a_later_subscriber_gets_the_rows_that_stand_and_it_covers(plane: Plane) -> None:
    open_, secret = by_ticks(plane, 0), by_ticks(plane, 1)
    everything, some = Clearance(Label.of(0, 1).bits), Clearance(Label.of(0).bits)
    query = plane.query(totals(open_, secret), everything, some, everything)
    first, second, third = (each.topic for each in query.classes)
    plane.start(IngestRun("ingest-1", (open_, secret)))
    running = plane.start(fed(query, 1))
    send(plane, open_, "x", "y")
    send(plane, secret, "y", "z")
    before = await_kept(plane, first, {"x": 1, "y": 2, "z": 1})
    plane.end(running)
    # Nothing is sent any more: only time goes on.
    running = plane.start(fed(query, 3))
    await_kept(plane, third, {"x": 1, "y": 2, "z": 1})
    await_kept(plane, second, {"x": 1})
    assert len(plane.read(first, len(before))) == len(before), "it has them already"
    send(plane, open_, "x", "y")
    await_kept(plane, second, {"x": 2})
    for topic in (first, third):
        await_kept(plane, topic, {"x": 2, "y": 3, "z": 1})
    plane.break_off(running)
    # After a crash nobody is new.
    count = len(plane.read(third, 5))
    plane.start(fed(query, 3))
    send(plane, open_, "x")
    await_kept(plane, third, {"x": 3, "y": 3, "z": 1})
    repeated = len(plane.read(third, 6)) - count
    assert 1 <= repeated <= 4, "what the broken batch gave may come again, and no more"


@pytest.mark.long
def test_a_query_over_upserts_begins_with_the_rows_that_stand(plane: Plane) -> None:
    stream = by_ticks(plane, 0)
    mine = Clearance(Label.of(0).bits)
    base = plane.query(totals(stream), mine)
    rows = Moving(Source(base.output), newest_of_each(base.output.keys))
    few = Filter(rows, Call("<", (_NUMBER, Literal(3, Type.BIGINT))))
    shown = Project(few, (Column("key", AttributeRef("key")), Column("n", _NUMBER)))
    low = plane.query(ToStream(shown, Change.UPSERT), mine)
    keys = (Column("n", _NUMBER),)
    groups = Aggregate(rows, keys, (Aggregation("keys", "count", None),))
    sizes = plane.query(ToStream(groups, Change.UPSERT), mine)
    plane.start(IngestRun("ingest-1", (stream,)))
    running = plane.start(fed(base, 1))
    send(plane, stream, "x", "x", "y", "z")
    await_kept(plane, base.classes[0].topic, {"x": 2, "y": 1, "z": 1})
    plane.end(running)
    running = plane.start(fed(base, 1, low.output.object_id))
    plane.start(fed(low, 1))
    await_kept(plane, low.classes[0].topic, {"x": 2, "y": 1, "z": 1})
    send(plane, stream, "x")
    # x does not fulfil the condition any more.
    seen = await_kept(plane, low.classes[0].topic, {"x": None, "y": 1, "z": 1})
    plane.end(running)
    # As a query that is added now, it begins at the end.
    ends = plane.of_queries.positions.ends([base.output.topic])
    sizes = replace(sizes, starting_offsets={t: written(each) for t, each in ends.items()})
    running = plane.start(fed(base, 1, low.output.object_id, sizes.output.object_id))
    plane.start(fed(sizes, 1))

    def groups_of(messages: list[Message]) -> dict[int, int | None]:
        found: dict[int, int | None] = {}
        for each in messages:
            value = each.value()
            number = json.loads(each.key() or b"")["n"]
            found[number] = None if value is None else json.loads(value)["keys"]
        return found

    topic = sizes.classes[0].topic
    plane.read_until(topic, lambda found: groups_of(found) == {1: 2, 3: 1}, timeout_s=_WAIT_S)
    send(plane, stream, "y", "z")
    wanted = {1: None, 2: 2, 3: 1}
    plane.read_until(topic, lambda found: groups_of(found) == wanted, timeout_s=_WAIT_S)
    after = await_kept(plane, low.classes[0].topic, {"x": None, "y": 2, "z": 2})
    assert len(after) == len(seen) + 2, "that others read the output too changes nothing here"
