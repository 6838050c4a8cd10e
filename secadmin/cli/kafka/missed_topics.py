"""Makes a consumer of librdkafka read topics that its group was set up without."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

_LOOK_S = 5.0
_LONGEST_S = 600.0
_ANSWER_S = 2.0


class MissedTopics:
    """Subscribes again if a topic that may be read has not been assigned for two looks.

    A group is set up in two steps: librdkafka finds the topics of the subscription, and then it
    asks for their partitions. A topic that is denied just in between is assigned to nobody. When
    the right is back, librdkafka finds the same topics as before, and so it does not set up the
    group again.

    Another member of the group may have the topic. That cannot be seen here, so each try comes
    after twice the time.
    """

    def __init__(
        self, look_s: float = _LOOK_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look_s = look_s
        self._clock = clock
        self._next_look = clock() + look_s
        # When to subscribe again for the sake of each topic, and how long was waited for that.
        self._due: dict[str, tuple[float, float]] = {}

    def serve(self, consumer: Any, subscription: str, subscribe: Callable[[], object]) -> None:
        """Look if it is time, and subscribe again if it is needed.

        `subscription` is the name of a topic, or a pattern that begins with ^. Raises
        KafkaException.
        """
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + self._look_s
        missed = _readable(consumer, subscription) - {each.topic for each in consumer.assignment()}
        begun = now + self._look_s, self._look_s
        self._due = {topic: self._due.get(topic, begun) for topic in missed}
        late = {topic: waited for topic, (at, waited) in self._due.items() if at <= now}
        for topic, waited in late.items():
            longer = min(2 * waited, _LONGEST_S)
            self._due[topic] = now + longer, longer
        if late:
            subscribe()


def _readable(consumer: Any, subscription: str) -> set[str]:
    """The topics of the subscription that the consumer may read now, as far as Kafka tells."""
    try:
        known = consumer.list_topics(timeout=_ANSWER_S).topics
    except KafkaException:
        return set()
    found = {name for name, topic in known.items() if topic.error is None and topic.partitions}
    if subscription.startswith("^"):
        return {name for name in found if re.match(subscription, name)}
    return found & {subscription}
