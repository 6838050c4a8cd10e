"""Ed's own program: a plain Kafka producer that knows only what `secadmin sender` wrote."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from deploy.quotes import Quote
from deploy.scenario.listener import read_settings
from deploy.scenario.story import Story


class Sending:
    """Sends quotes of both streams, by day, in a thread; each is acknowledged exactly once.

    Paced until `hurry`, so that there is always something under way.
    """

    def __init__(self, story: Story, pause_s: float) -> None:
        self._story, self._pause_s = story, pause_s
        self._producers = {stream: self._producer(stream) for stream in story.sent}
        self._failures: list[str] = []
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sending")

    def _producer(self, stream: str) -> tuple[Producer, str]:
        ed = self._story.people["ed"]
        folder: Path = ed.folder / f"sender-{stream}"
        ed.run("sender", stream, "--dir", str(folder))
        topic = json.loads((folder / "sender.json").read_text())["topic"]
        settings = read_settings(folder / "librdkafka.conf")
        return Producer({**settings, "linger.ms": 5, "log_level": 0}), topic

    def start(self) -> Sending:
        """Begin to send."""
        self._thread.start()
        return self

    def finish(self, timeout_s: float = 120.0) -> None:
        """Send what is left without pauses, and wait until the broker has acknowledged all."""
        self._hurry.set()
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "the quotes were not sent in time"
        for producer, _ in self._producers.values():
            assert producer.flush(timeout_s) == 0, "not all quotes were acknowledged"
        assert self._failures == []

    def _run(self) -> None:
        for stream, quote in _by_day(self._story.quotes):
            producer, topic = self._producers[stream]
            value = json.dumps(asdict(quote)).encode()
            producer.produce(topic, value, on_delivery=self._delivered)
            producer.poll(0)
            self._story.sent[stream].append(quote)
            self._hurry.wait(self._pause_s)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())


def _by_day(quotes: Mapping[str, Sequence[Quote]]) -> list[tuple[str, Quote]]:
    """All quotes with their stream, oldest first."""
    pairs = [(stream, quote) for stream, each in quotes.items() for quote in each]
    return sorted(pairs, key=lambda pair: (pair[1].day, pair[0]))
