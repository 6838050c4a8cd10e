"""Telling an access that has ended from one that was moved."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from secadmin.cli.kafka.login_check import LoginCheck, login_refused


def test_it_asks_only_while_a_topic_is_denied() -> None:
    now, asked = [0.0], list[float]()

    def refused() -> bool:
        asked.append(now[0])
        return False

    check = LoginCheck(refused, lambda: now[0])
    assert not check.is_over()
    check.denied()
    for now[0] in (1.0, 5.0, 6.0, 10.0):
        assert not check.is_over()
    assert asked == [5.0, 10.0]
    check.served()
    now[0] = 60.0
    assert not check.is_over()
    assert asked == [5.0, 10.0]


def test_it_tells_the_end() -> None:
    now = [0.0]
    check = LoginCheck(lambda: True, lambda: now[0])
    check.denied()
    now[0] = 5.0
    assert check.is_over()


class Client:
    """A client whose connection meets the error."""

    def __init__(self, settings: dict[str, Any], error: KafkaError) -> None:
        self.settings = settings
        self.error = error

    def list_topics(self, timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, timeout: float) -> None:
        self.settings["error_cb"](self.error)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("code", "refused"), [(KafkaError._AUTHENTICATION, True), (KafkaError._TRANSPORT, False)]
)
def test_only_a_refused_login_is_the_end(code: int, refused: bool) -> None:
    assert login_refused(lambda settings: Client(settings, KafkaError(code)), {}) is refused
