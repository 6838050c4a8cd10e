"""Hears the echoes of ticks in a topic of echoes, from now on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from catalog.errors import PlatformError
from secfilter.kafka_options import GROUP_PREFIX

_TIMEOUT_S = 10.0
_AT_ONCE = 1_000
_AGAIN_S = 2.0
_log = logging.getLogger(__name__)


def keep_ticking(name: str, tick: Callable[[], object], goes_on: Callable[[], bool]) -> None:
    """Call `tick`, which ticks for the run of that name as long as it `goes_on`.

    After a failure it is called again, a while later.
    """
    while goes_on():
        try:
            tick()
        except PlatformError as error:
            _log.warning("%s: no ticks now: %s", name, error.detail)
        except Exception as error:  # whatever it is, time must not stand still for ever
            _log.warning("%s: no ticks now: %s", name, type(error).__name__)
        if goes_on():
            time.sleep(_AGAIN_S)


@contextmanager
def tick_clients(config: Mapping[str, Any], topic: str) -> Iterator[tuple[Producer, Consumer]]:
    """A producer for ticks, and a consumer of the echoes that come to the topic from now on.

    `config` is a librdkafka configuration with the engine's account.
    """
    producer = Producer({**config, "linger.ms": 0, "acks": "all", "log_level": 0})
    consumer = Consumer(
        {
            **config,
            "group.id": f"{GROUP_PREFIX}-ticker",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            # An echo is fetched when it comes. To ask again more often costs more at rest.
            "fetch.wait.max.ms": 5_000,
            "log_level": 0,
        }
    )
    try:
        place = TopicPartition(topic, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
        consumer.assign([TopicPartition(topic, 0, end)])
        yield producer, consumer
    finally:
        consumer.close()
        producer.purge()
        producer.flush(1)


def heard(consumer: Consumer, wait_s: float) -> list[Message]:
    """What has come, and if nothing has, what comes within that time."""
    first = consumer.poll(wait_s)
    return [] if first is None else [first, *consumer.consume(_AT_ONCE, 0)]


def ignored(_error: KafkaError | None, _message: Message) -> None:
    """Do nothing when a tick was sent. One that was lost is followed by others."""
