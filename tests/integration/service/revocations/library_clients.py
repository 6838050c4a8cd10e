"""Clients that use a Kafka library: what subscribers run, and what it lets them try."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from catalog.topics import out_pattern
from secadmin.cli.kafka.missed_topics import MissedTopics
from secadmin.cli.kafka.retaking import Retaking
from secadmin.kafka.acl import group_prefix
from tests.integration.kafka.clients import DENIED_TOPIC, client_config
from tests.integration.service.revocations.watching_client import Subscription, WatchingClient

_LOOK_S = 0.2
_RETAKEN_AFTER_S = 0.2


class LibraryClient(WatchingClient):
    """A consumer of the library; `take_up` says what it reads."""

    def __init__(self, subscription: Subscription, group: str, **config: Any) -> None:
        super().__init__(subscription)
        own = {
            "group.id": group_prefix(subscription.credentials.username) + group,
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
            "topic.metadata.refresh.interval.ms": 500,
            "fetch.error.backoff.ms": 50,
            "fetch.wait.max.ms": 100,
        }
        self._config = client_config(subscription.settings, subscription.credentials) | own | config

    def take_up(self, consumer: Consumer) -> None:
        """Subscribe, or assign."""
        raise NotImplementedError

    def is_ready(self, since: float) -> bool:
        return self.has_read(since)

    def is_shut_out(self, began: float, returned: float) -> bool:
        # The library fetches one after the other, and reports a refusal once, however often it
        # comes: also of one that came while the call was under way.
        return super().is_shut_out(began, began)

    def run(self) -> None:
        consumer = Consumer(self._config)
        try:
            self.take_up(consumer)
            while not self.stopped.is_set():
                self._poll(consumer)
        finally:
            consumer.close()

    def _poll(self, consumer: Consumer) -> None:
        message = consumer.poll(_LOOK_S)
        if message is None:
            return
        error = message.error()
        if error is None:
            self.got(str(message.topic()), message.value() or b"")
        elif error.code() == DENIED_TOPIC:
            self.refused(time.monotonic())


class GroupMember(LibraryClient):
    """Subscribes to the topic by its name: the well-behaved one, or one of another group."""

    def __init__(self, subscription: Subscription, group: str, **config: Any) -> None:
        super().__init__(subscription, group, **config)
        self._retaking = Retaking(_RETAKEN_AFTER_S)
        self._missed = MissedTopics()

    def refused(self, at: float) -> None:
        super().refused(at)
        self._retaking.denied()

    @property
    def wanted(self) -> str:
        """The topic that it subscribes to, or a pattern."""
        return self.subscription.topic

    def _poll(self, consumer: Consumer) -> None:
        self._missed.serve(consumer, self.wanted, lambda: self.take_up(consumer))
        self._retaking.serve(consumer, lambda: self.take_up(consumer))
        super()._poll(consumer)

    def take_up(self, consumer: Consumer) -> None:
        consumer.subscribe([self.wanted])


class PatternFollower(GroupMember):
    """Subscribes by the pattern that it was given, and so follows its own moves."""

    @property
    def wanted(self) -> str:
        return out_pattern(self.subscription.output)

    def take_up(self, consumer: Consumer) -> None:
        consumer.subscribe([self.wanted], on_assign=self._moved)

    def _moved(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """A topic that it may no longer see goes without an error where metadata show it."""
        if self.subscription.topic not in {place.topic for place in places}:
            self.refused(time.monotonic())


class Assigned(LibraryClient):
    """Takes its partition without a group, from an offset that it chooses.

    It is `OFFSET_BEGINNING`, `OFFSET_END`, or a number, which may lie beyond the end.
    """

    def __init__(self, subscription: Subscription, offset: int) -> None:
        # The refusal is to come from a fetch: one of metadata the library keeps to itself.
        super().__init__(
            subscription, "assigned", **{"topic.metadata.refresh.interval.ms": 300_000}
        )
        self._offset = offset

    def take_up(self, consumer: Consumer) -> None:
        consumer.assign([TopicPartition(self.subscription.topic, 0, self._offset)])
