"""How many queries that keep state two cores carry."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.feed import Feed
from tests.bench.figure import Figure, percentiles
from tests.bench.fused import consumer_of, cores_and_latencies, query_engines
from tests.bench.world import World

STREAM = "counted"
COUNTS = (1, 4, 8, 16)
RATE = 200
WARM_S, MEASURE_S = 60.0, 60.0


def many_windows(world: World) -> Iterator[Figure]:
    """CPU of the query engines, and how old the newest record is when a window shows it."""
    world.add_stream(STREAM)
    world.grant("ADMIN", "stream", STREAM, "READ TUPLE")
    producer, topic = world.sender(STREAM)
    group = query_engines(world)
    topics: list[str] = []
    for count in COUNTS:
        for number in range(len(topics), count):
            world.add_query(f"windows{number}", _text(number))
            topics.append(world.topic_of_new_class(f"windows{number}"))
        world.admin.wait_until_fed()
        consumer = consumer_of(world, topics)
        with Feed(producer, [topic], RATE):
            cores, found = cores_and_latencies(group, consumer, WARM_S, MEASURE_S)
        consumer.close()
        what = f"{count} queries with windows over one stream, {RATE} records/s"
        yield Figure(f"{what}: CPU of the query engines", cores, "cores")
        yield from percentiles(f"{what}, updates", found, (None, None, None))


def _text(number: int) -> str:
    """Each query has another condition, so no two share an execution."""
    return (
        f"SELECT window_start, max(sent) AS sent, count(*) AS many FROM {STREAM} "
        f"WHERE n % 1000 <> {number} GROUP BY TUMBLE(ts, INTERVAL '1' SECOND) EMIT UPDATES"
    )
