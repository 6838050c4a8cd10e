"""A principal that was given out writes and fetches no faster than it may: Kafka's quotas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer

from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.principals import Credentials
from secadmin.kafka.quotas import Quotas
from secadmin.kafka.wire.client_quotas import alter_user_quotas
from tests.integration.kafka.clients import (
    client_config,
    reader,
    secadmin_producer,
    until,
    write,
)
from tests.integration.kafka.conftest import Parts

SLOW, FAST = 2_000, 1_000_000_000


@contextmanager
def throttled(parts: Parts, writer: Credentials) -> Iterator[tuple[Producer, list[Any]]]:
    """A producer of the principal, and what the broker tells it of being throttled."""
    told: list[Any] = []
    config = client_config(parts.settings, writer) | {"throttle_cb": told.append}
    yield Producer(config), told


def quotas(parts: Parts, produced: int, fetched: int) -> Quotas:
    return Quotas(parts.connections, produced, fetched)


def test_a_sender_is_held_to_its_rate_until_that_is_taken_back(parts: Parts) -> None:
    topic = parts.new_topic("in.s")
    writer = parts.new_writer(topic)
    quotas(parts, SLOW, FAST).give(writer.username)
    with throttled(parts, writer) as (producer, told):

        def is_told() -> bool:
            producer.produce(topic, "x" * 500)
            producer.poll(0.01)
            return bool(told)

        until(is_told, "a throttled answer")
        producer.purge()
    quotas(parts, SLOW, FAST).take_back(writer.username)
    quotas(parts, SLOW, FAST).take_back(writer.username)
    other = parts.new_writer(topic)
    with throttled(parts, other) as (producer, told):
        write(producer, topic, ["x" * 500] * 20)
        assert not told, "nobody else is bound"


def test_a_reader_is_held_to_its_rate(parts: Parts) -> None:
    topic = parts.new_topic()
    write(secadmin_producer(parts.settings), topic, ["x" * 5_000] * 20)
    credentials = parts.new_reader(topic)
    quotas(parts, FAST, SLOW).give(credentials.username)
    told: list[Any] = []
    config: dict[str, Any] = {"throttle_cb": told.append, "fetch.message.max.bytes": 6_000}
    with reader(parts.settings, credentials, **config) as own:
        own.consumer.subscribe([topic])
        own.read_until(lambda: told, "a throttled answer")


def test_what_kafka_refuses_is_told(parts: Parts) -> None:
    address = next(iter(live_brokers(parts.connections).values()))
    with (
        parts.connections.lent(address) as connection,
        pytest.raises(ValueError, match="the broker does not set the quotas"),
    ):
        alter_user_quotas(connection, "send-0123456789abcdef01234567", {"no_such_rate": 1.0})
