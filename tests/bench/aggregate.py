"""How soon the result of a windowed aggregate is there.

A window's result is sent once, when the window has closed. So it is measured from the record that
closes the window, the first one past its end, to the result at the consumer: there is no earlier
result to measure, and no update of one.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from datetime import UTC, datetime

from confluent_kafka import Consumer, Producer

from tests.bench.feed import Feed, first_arrival
from tests.bench.figure import Figure, percentiles
from tests.bench.world import PATIENCE_S, World

RATE = 200
WINDOW_MS = 200
WARM_S, MEASURE_S = 60.0, 60.0


def aggregate(world: World) -> list[Figure]:
    """Producer → ingest → windowed aggregate → SecFilter → consumer, from the closing record."""
    world.add_stream("sums")
    world.add_query(
        "summed",
        "SELECT window_end, count(*) AS many, max(n) AS newest FROM sums"
        f" GROUP BY TUMBLE(ts, INTERVAL '{WINDOW_MS}' MILLISECOND)",
    )
    world.grant("ADMIN", "stream", "sums", "READ TUPLE")
    consumer = world.subscriber(world.admin, "summed")
    world.admin.wait_until_fed()
    producer, topic = world.sender("sums")
    with _Clocked(producer, topic) as feed:
        first_arrival(consumer, PATIENCE_S)
        found = _latencies_ms(consumer, feed)
    consumer.close()
    name = f"windowed aggregate, {RATE} records/s, from the closing record"
    return percentiles(name, found, (200.0, None, 350.0))


class _Clocked(Feed):
    """Sends tuples whose event time is the clock's, and remembers when each was sent."""

    def __init__(self, producer: Producer, topic: str) -> None:
        super().__init__(producer, [topic], RATE)
        # Event times in milliseconds since 1970, rising, and when each was sent.
        self._times: list[int] = []
        self._sent: list[float] = []

    def closed_at(self, window_end: int) -> float:
        """When the first record at or past the window's end was sent (steady clock, seconds)."""
        return self._sent[bisect_left(self._times, window_end)]

    def made(self, number: int) -> bytes:
        """The next tuple to send, of now."""
        millis = time.time_ns() // 1_000_000
        at = datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")
        self._sent.append(time.monotonic())
        self._times.append(millis)
        return json.dumps({"ts": at, "n": number, "sent": time.monotonic_ns()}).encode()


def _latencies_ms(consumer: Consumer, feed: _Clocked) -> list[float]:
    found: list[float] = []
    begin = time.monotonic() + WARM_S
    while time.monotonic() < begin + MEASURE_S:
        message = consumer.poll(0.1)
        if message is None or message.error() is not None or not message.value():
            continue
        arrived = time.monotonic()
        end = datetime.fromisoformat(json.loads(message.value() or b"")["window_end"])
        if arrived >= begin:
            closed = feed.closed_at(round(end.timestamp() * 1000))
            found.append((arrived - closed) * 1000)
    return found
