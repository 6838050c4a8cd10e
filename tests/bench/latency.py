"""Latency from producer to consumer: through the platform, and through Kafka alone beside it."""

from __future__ import annotations

import secrets

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench.feed import Feed, latencies_ms
from tests.bench.figure import Figure, percentiles
from tests.bench.world import World

RATE = 500
# Java compiles what runs often, and batches get longer once nothing has changed for two minutes.
# What is late comes at the end of a batch, of which there are to be several.
WARM_S, MEASURE_S = 300.0, 300.0


def end_to_end(world: World) -> list[Figure]:
    """Producer → ingest → stateless query → SecFilter → consumer, TLS throughout, warm."""
    world.add_stream("latency")
    world.add_query("passed", "SELECT n, sent FROM latency WHERE n >= 0")
    world.grant("ADMIN", "stream", "latency", "READ TUPLE")
    consumer = world.subscriber(world.admin, "passed")
    world.admin.wait_until_fed()
    producer, topic = world.sender("latency")
    with Feed(producer, [topic], RATE):
        found = latencies_ms(consumer, WARM_S, MEASURE_S)
    consumer.close()
    return percentiles(f"end to end, {RATE} records/s", found, (2.0, 30.0, 80.0))


def kafka_alone(world: World) -> list[Figure]:
    """The same records and clients over one topic and nothing between."""
    settings = world.stack.settings.kafka
    config = settings.client_config(settings.secadmin) | {"log_level": 3}
    topic = f"bench-{secrets.token_hex(4)}"
    # Kept in a variable: a client that is collected takes its requests with it.
    admin = AdminClient(config)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    reader = {"group.id": "bench", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50}
    consumer = Consumer(config | reader)
    consumer.subscribe([topic])
    with Feed(Producer(config | {"linger.ms": 0}), [topic], RATE):
        found = latencies_ms(consumer, 5.0, 20.0)
    consumer.close()
    return percentiles(f"Kafka alone, {RATE} records/s", found, (None, None, None))
