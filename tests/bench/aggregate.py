"""How soon a windowed aggregate shows a record.

With EMIT UPDATES: from the record to the first result that counts it. Without: from the record that
closes the window, the first one past its end, to the window's only result.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer, Producer

from tests.bench.feed import Feed, first_arrival
from tests.bench.figure import Figure, percentiles
from tests.bench.world import PATIENCE_S, World

RATE = 200
# Until Java has compiled what plans a batch.
WARM_S, MEASURE_S = 240.0, 60.0


def aggregate(world: World) -> list[Figure]:
    """Producer → ingest → windowed aggregate → SecFilter → consumer, with and without updates."""
    updates = _measured(world, "updated", 1_000, " EMIT UPDATES", _Feed.counted_ms)
    closing = _measured(world, "closed", 200, "", _Feed.closed_ms)
    name = f"windowed aggregate, {RATE} records/s"
    return [
        *percentiles(f"{name}, updates, from each record", updates, (200.0, None, 350.0)),
        *percentiles(f"{name}, closed windows, from the closing record", closing, (None,) * 3),
    ]


@dataclass(frozen=True, slots=True)
class _Result:
    """A window's result: where it ends, and the newest record in it; when it came."""

    start: int
    end: int
    newest: int
    arrived: float


def _measured(
    world: World,
    name: str,
    window_ms: int,
    ending: str,
    latencies: Callable[[_Feed, _Result], Iterable[float]],
) -> list[float]:
    stream = f"{name}-in"
    world.add_stream(stream)
    world.add_query(
        name,
        f'SELECT window_start, window_end, max(n) AS newest FROM "{stream}"'
        f" GROUP BY TUMBLE(ts, INTERVAL '{window_ms}' MILLISECOND){ending}",
    )
    world.grant("ADMIN", "stream", stream, "READ TUPLE")
    consumer = world.subscriber(world.admin, name)
    world.admin.wait_until_fed()
    producer, topic = world.sender(stream)
    found: list[float] = []
    with _Feed(producer, topic) as feed:
        first_arrival(consumer, PATIENCE_S)
        begin = time.monotonic() + WARM_S
        while time.monotonic() < begin + MEASURE_S:
            result = _next(consumer)
            told = latencies(feed, result) if result else ()
            found += told if result and result.arrived >= begin else ()
    consumer.close()
    world.clear()
    return found


def _next(consumer: Consumer) -> _Result | None:
    message = consumer.poll(0.1)
    if message is None or message.error() is not None or not message.value():
        return None
    arrived = time.monotonic()
    value = json.loads(message.value() or b"")
    start, end = (
        round(datetime.fromisoformat(value[edge]).timestamp() * 1000)
        for edge in ("window_start", "window_end")
    )
    return _Result(start, end, value["newest"], arrived)


class _Feed(Feed):
    """Sends tuples whose event time is the clock's, and remembers when each was sent."""

    def __init__(self, producer: Producer, topic: str) -> None:
        super().__init__(producer, [topic], RATE)
        # Event times in milliseconds since 1970, rising, and when each was sent (steady clock, s).
        self._times: list[int] = []
        self._sent: list[float] = []
        # Of each window, the first record that no result has counted.
        self._uncounted: dict[int, int] = {}

    def counted_ms(self, result: _Result) -> list[float]:
        """How long ago those records were sent that this result is the first one to count."""
        first = self._uncounted.get(result.end, bisect_left(self._times, result.start))
        self._uncounted[result.end] = result.newest + 1
        sent = self._sent[first : result.newest + 1]
        return [(result.arrived - each) * 1000 for each in sent]

    def closed_ms(self, result: _Result) -> list[float]:
        """How long ago the first record at or past the window's end was sent."""
        sent = self._sent[bisect_left(self._times, result.end)]
        return [(result.arrived - sent) * 1000]

    def made(self, number: int) -> bytes:
        """The next tuple to send, of now."""
        millis = time.time_ns() // 1_000_000
        at = datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")
        self._sent.append(time.monotonic())
        self._times.append(millis)
        return json.dumps({"ts": at, "n": number, "sent": time.monotonic_ns()}).encode()
