"""Which broker is asked what any broker can answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catalog.errors import InvalidInput, Unavailable
from catalog.settings import KafkaAccount, KafkaSettings
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from secadmin.kafka.wire.connections import Answer, BrokerConnections, Unanswered

A, B, C = (BrokerAddress(host, 9094) for host in "abc")


class Lending(BrokerConnections):
    """Lends no connection: it notes who was asked. `silent` brokers do not answer."""

    def __init__(self, bootstrap: str = "a:9094, b:9094") -> None:
        account = KafkaAccount("x", Path("x"))
        super().__init__(KafkaSettings(bootstrap, Path("x"), account, account, account, account))
        self.asked: list[BrokerAddress] = []
        self.silent: set[BrokerAddress] = set()

    @contextmanager
    def lent(self, address: BrokerAddress) -> Iterator[BrokerConnection]:
        self.asked.append(address)
        if address in self.silent:
            raise TimeoutError("the broker did not answer")
        yield address  # type: ignore[misc]


def test_the_one_that_answered_last_is_asked_first() -> None:
    lending = Lending()
    assert lending.ask("ask", str) == str(A)
    lending.silent = {A}
    assert lending.ask("ask", str) == str(B)
    lending.silent = set()
    assert lending.ask("ask", str) == str(B)
    assert lending.asked == [A, A, B, B]


def test_one_that_was_learned_is_asked_too() -> None:
    lending = Lending()
    lending.learn([B, C, C])
    lending.silent = {A, B}
    assert lending.ask("ask", str) == str(C)
    assert lending.asked == [A, B, C]


def test_none_answers() -> None:
    lending = Lending()
    lending.silent = {A, B}
    with pytest.raises(Unavailable, match="cannot make it: the broker did not answer"):
        lending.ask("make it", str)


def test_two_that_are_silent_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secadmin.kafka.wire.connections._PATIENCE_S", -1.0)
    lending = Lending()
    lending.silent = {A}
    with pytest.raises(Unavailable):
        lending.ask("ask", str)
    assert lending.asked == [A]


@pytest.mark.parametrize("bootstrap", ["", "a", "a:x", "a:9094,"])
def test_a_bootstrap_that_names_no_broker(bootstrap: str) -> None:
    with pytest.raises(InvalidInput, match="HOST:PORT"):
        Lending(bootstrap)


def test_a_broker_that_has_got_the_question_may_do_it_later() -> None:
    def question(broker: BrokerConnection) -> str:
        if str(broker) == str(A):
            raise TimeoutError("the broker did not answer")
        return str(broker)

    assert Lending().answer("ask", question) == Answer(str(B), settled=False)
    with pytest.raises(Unanswered, match="cannot make it: the broker did not answer"):
        Lending("a:9094").answer("make it", question)


def test_a_broker_that_was_not_reached_does_nothing_later() -> None:
    lending = Lending()
    lending.silent = {A}
    assert lending.answer("ask", str) == Answer(str(B), settled=True)
    lending.silent = {A, B}
    with pytest.raises(Unavailable) as caught:
        lending.answer("ask", str)
    assert not isinstance(caught.value, Unanswered)


def test_a_broker_that_took_long_may_have_asked_two_controllers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("secadmin.kafka.wire.connections._SENT_ONCE_S", -1.0)
    assert Lending().answer("ask", str) == Answer(str(A), settled=False)
