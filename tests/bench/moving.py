"""A moving window of rows with an aggregate: how many tuples it takes, and how soon it tells.

A result for an instant can come when a tick says that no tuple up to this instant comes any more.
So what the lateness and the ticks of a stream take is the way to that tick in the labelled topic,
and what the window takes is the way from there to the consumer.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from confluent_kafka import Consumer, Message, TopicPartition

from catalog.topics import TICK_HEADER, lab_topic
from secfilter.session import build_session
from tests.bench.events import event_rates
from tests.bench.feed import Feed, first_arrival
from tests.bench.figure import Figure, middle, percentiles
from tests.bench.world import PATIENCE_S, World
from tests.jvm import end_jvm

ROWS, PARTITIONS = 100, 100
LEAST, MOST_MS = 50_000.0, 300.0
# The windows of a query hold 200,000 tuples.
BATCH = 50_000
RATE, LATENESS_MS = 200, 1_000
# Until Java has compiled what plans a batch.
WARM_S, MEASURE_S = 240.0, 60.0
STREAM, QUERY = "moved", "moving"
_WINDOW = f"[PARTITION BY place ROWS {ROWS}]"


def moving(world: World) -> Iterator[Figure]:
    """Tuples a second with one and two tasks, and milliseconds from the tick to the result."""
    end_jvm()
    text = f"SELECT ISTREAM place, AVG(amount) AS mean FROM events {_WINDOW} GROUP BY place"
    what = f"[ROWS {ROWS}] with an aggregate, {PARTITIONS} partitions"
    with closing(_Spark()) as two:
        for tasks in (1, 2):
            rates = event_rates(two.session, text, tasks, BATCH)
            yield middle(f"{what}, tasks: {tasks}", rates, "tuples/s")
        slowness = [LEAST / each for each in rates]
        yield middle(f"{LEAST:,.0f} tuples/s ÷ these", slowness, "ratio", 1.0)
    seen = _delivered(world)
    name = f"{what}, {RATE} records/s, lateness {LATENESS_MS} ms"
    yield from percentiles(f"{name}, from the tick", seen.from_tick, (MOST_MS, None, None))
    yield from percentiles(f"{name}, from the record", seen.from_record, (None, None, None))


class _Spark:
    """The platform's Spark with two cores."""

    def __init__(self) -> None:
        self.session = build_session("local[2]", None)

    def close(self) -> None:
        """End it and its Java."""
        self.session.stop()
        end_jvm()


@dataclass(slots=True)
class _Seen:
    """Milliseconds of each result: from the first tick behind its instant, and from its record."""

    from_tick: list[float] = field(default_factory=list)
    from_record: list[float] = field(default_factory=list)
    # Of each tick: its time, and when it was in the topic. Both rise (ms since 1970).
    _times: list[int] = field(default_factory=list)
    _stood: list[int] = field(default_factory=list)

    def tick(self, record: Message) -> None:
        """A record of the labelled topic, which may be a tick."""
        if TICK_HEADER in dict(record.headers() or ()):
            self._times.append(int(record.value() or b""))
            self._stood.append(record.timestamp()[1])

    def result(self, record: Message, arrived_ms: float) -> None:
        """A delivered result. Its tick has been read already."""
        value = json.loads(record.value() or b"")
        at = datetime.fromisoformat(value["instant"]).timestamp() * 1_000
        first = bisect_right(self._times, at)
        if first < len(self._times):
            self.from_tick.append(arrived_ms - self._stood[first])
            self.from_record.append(arrived_ms - value["newest"])


def _delivered(world: World) -> _Seen:
    """Producer → ingest → moving window → SecFilter → consumer, of what comes after the warm-up."""
    attributes = [
        {"name": "ts", "type": "timestamp", "required": True},
        {"name": "place", "type": "bigint", "required": True},
        {"name": "sent", "type": "bigint", "required": True},
    ]
    world.admin.post("/schemas", name=STREAM, attributes=attributes)
    world.add_stream(STREAM, STREAM, time="broker", lateness_ms=LATENESS_MS)
    world.add_query(
        QUERY,
        f"SELECT ISTREAM place, MAX(sent) AS newest FROM {STREAM} {_WINDOW} GROUP BY place",
    )
    world.grant("ADMIN", "stream", STREAM, "READ TUPLE")
    results = world.subscriber(world.admin, QUERY)
    world.admin.wait_until_fed()
    producer, topic = world.sender(STREAM)
    seen = _Seen()
    with _Feed(producer, [topic], RATE):
        first_arrival(results, PATIENCE_S)
        warm_until = time.monotonic() + WARM_S
        while time.monotonic() < warm_until:
            results.consume(1_000, 0.1)
        with closing(_ticks(world)) as ticks:
            end = time.monotonic() + MEASURE_S
            while time.monotonic() < end:
                _read(ticks, results, seen)
    results.close()
    return seen


def _read(ticks: Consumer, results: Consumer, seen: _Seen) -> None:
    found = results.consume(1_000, 0.01)
    arrived_ms = time.time() * 1_000
    # The tick of a result was there before it.
    for record in _whole(ticks.consume(10_000, 0.0)):
        seen.tick(record)
    for record in _whole(found):
        seen.result(record, arrived_ms)


def _whole(records: Iterable[Message]) -> Iterator[Message]:
    return (each for each in records if each.error() is None and each.value())


def _ticks(world: World) -> Consumer:
    """A consumer of the stream's labelled topic, from now on."""
    kafka = world.stack.settings.kafka
    config = {**kafka.client_config(kafka.secadmin), "log_level": 3}
    consumer = Consumer({**config, "group.id": "bench-moving", "fetch.wait.max.ms": 10})
    place = TopicPartition(lab_topic(STREAM), 0)
    _, end = consumer.get_watermark_offsets(place, timeout=10)
    consumer.assign([TopicPartition(lab_topic(STREAM), 0, end)])
    return consumer


class _Feed(Feed):
    """Sends tuples of many places, each with the time of the clock."""

    def made(self, number: int) -> bytes:
        """The next tuple to send, of now."""
        millis = time.time_ns() // 1_000_000
        at = datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"ts": at, "place": number % PARTITIONS, "sent": millis}).encode()
