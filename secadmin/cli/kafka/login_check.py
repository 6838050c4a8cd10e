"""Finds out that an access has ended while its connections are still open.

Kafka checks a login when a connection begins. One that stays open only sees that its topic is not
allowed any more, which is what a move to another topic looks like too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from catalog.errors import PlatformError
from secadmin.cli.kafka.client_errors import is_ended, open_client

_EVERY_S = 5.0
_LONGEST_S = 3.0


def login_refused(make: Callable[[dict[str, Any]], Any], settings: Mapping[str, Any]) -> bool:
    """Say whether Kafka refuses the login of a new connection with the settings."""
    refused: list[KafkaError] = []

    def note(error: KafkaError) -> None:
        if is_ended(error):
            refused.append(error)

    try:
        client = open_client(make, {**settings, "error_cb": note})
    except PlatformError:
        return False
    try:
        client.list_topics(timeout=_LONGEST_S)
    except KafkaException:
        # Without an answer: the callback says whether that is for good.
        client.poll(0)
    finally:
        client.close()
    return bool(refused)


class LoginCheck:
    """Calls `refused` now and then after a topic was denied, until a record is read again."""

    def __init__(
        self, refused: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._refused = refused
        self._clock = clock
        self._next: float | None = None

    def denied(self) -> None:
        """A topic was denied."""
        if self._next is None:
            self._next = self._clock() + _EVERY_S

    def served(self) -> None:
        """A record was read: the access is alive."""
        self._next = None

    def is_over(self) -> bool:
        """Say whether the access is known to have ended."""
        if self._next is None or self._clock() < self._next:
            return False
        self._next = self._clock() + _EVERY_S
        return self._refused()
