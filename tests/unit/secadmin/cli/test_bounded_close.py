"""Ending a Kafka client that may never end."""

from __future__ import annotations

from threading import Event

from secadmin.cli.kafka.bounded_close import close


class Client:
    """Ends when it is `let` to."""

    def __init__(self) -> None:
        self.let, self.ended = Event(), Event()

    def close(self) -> None:
        self.let.wait()
        self.ended.set()


def test_one_that_never_ends_is_not_waited_for() -> None:
    client = Client()
    close(client, limit_s=0.01)
    assert not client.ended.is_set()
    client.let.set()


def test_one_that_ends_is_waited_for() -> None:
    client = Client()
    client.let.set()
    close(client, limit_s=600)
    assert client.ended.is_set()
