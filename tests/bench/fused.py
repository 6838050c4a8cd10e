"""What many queries without state over one stream cost beside one."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, TopicPartition

from catalog.engines import INGEST
from tests.bench.feed import Feed, latencies_ms
from tests.bench.figure import Figure, percentiles
from tests.bench.process_group import ProcessGroup
from tests.bench.settled import SETTLED_S
from tests.bench.world import World

STREAM = "fused"
COUNTS = (1, 10, 100)
RATE = 200
# The last ones join when the group has come to the end of a batch, and it starts again with them.
PATIENCE_S, WARM_S, MEASURE_S = 1_200.0, 90.0, 150.0


def fused(world: World) -> Iterator[Figure]:
    """CPU of the query engines, and latency, with 1, 10 and 100 queries; each record is for one."""
    world.add_stream(STREAM)
    world.grant("ADMIN", "stream", STREAM, "READ TUPLE")
    producer, topic = world.sender(STREAM)
    group = query_engines(world)
    first: float | None = None
    for count in COUNTS:
        topics = _with_queries(world, count)
        consumer = consumer_of(world, topics)
        with Feed(producer, [topic], RATE):
            cores, found = cores_and_latencies(group, consumer, WARM_S, MEASURE_S)
        consumer.close()
        for number in range(count):
            world.remove_query(_name(count, number))
        first = cores if first is None else first
        what = f"{count} queries without state over one stream, {RATE} records/s"
        yield Figure(f"{what}: CPU of the query engines", cores, "cores")
        if count > 1:
            target = 3.0 if count == COUNTS[-1] else None
            yield Figure(f"{what}: CPU ÷ CPU of one", cores / first, "ratio", target)
        yield from percentiles(what, found, (None, 100.0, None))


def cores_and_latencies(
    group: ProcessGroup, consumer: Consumer, warm_s: float, measure_s: float
) -> tuple[float, list[float]]:
    """The CPU that the processes take, in cores, and how old results are when they come, in ms."""
    latencies_ms(consumer, warm_s, 1.0)
    before, began = group.cpu_s(), time.monotonic()
    found = latencies_ms(consumer, 0.0, measure_s)
    return (group.cpu_s() - before) / (time.monotonic() - began), found


def query_engines(world: World) -> ProcessGroup:
    """The processes of the engines that run queries."""
    names = [n for n in world.stack.engines if n != INGEST]
    return ProcessGroup(*(world.pid(world.stack.engines[name].name) for name in names))


def _with_queries(world: World, count: int) -> list[str]:
    """The topics of so many queries, of which each takes its share of the records."""
    for number in range(count):
        world.add_query(_name(count, number), _text(count, number))
    topics = [world.topic_of_new_class(_name(count, number)) for number in range(count)]
    world.admin.wait_until_fed()
    time.sleep(SETTLED_S)
    if count > 1:
        _await_fused(world, count)
    return topics


def _name(count: int, number: int) -> str:
    return f"fused{count}x{number}"


def _text(count: int, number: int) -> str:
    return f"SELECT n, sent FROM {STREAM} WHERE n % {count} = {number}"


def _await_fused(world: World, count: int) -> None:
    """Wait until so many queries run together."""
    folder, deadline = world.stack.settings.secfilter.checkpoints, time.monotonic() + PATIENCE_S
    while len(list(folder.glob("*/seat.json"))) < count:
        if time.monotonic() > deadline:
            raise TimeoutError("not all queries run together")
        time.sleep(1)


def consumer_of(world: World, topics: list[str]) -> Consumer:
    """A consumer of these topics, with the rights of SecAdmin's account."""
    kafka = world.stack.settings.kafka
    config = {**kafka.client_config(kafka.secadmin), "log_level": 3}
    consumer = Consumer({**config, "group.id": "bench-fused", "fetch.wait.max.ms": 50})
    consumer.assign([TopicPartition(topic, 0) for topic in topics])
    return consumer
