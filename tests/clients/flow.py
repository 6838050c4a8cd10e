"""Numbered records that go to a stream at a steady rate."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

from deploy.scenario.listener import read_settings

PER_SECOND = 40
_PATIENCE_S = 60.0


@dataclass
class Flow:
    """Sends numbered records to a stream until it is stopped. `folder` is what `sender` wrote."""

    stream: str
    folder: Path
    sent_at: dict[int, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, name=f"send {self.stream}")
        self._thread.start()

    def stop(self) -> None:
        """End; the broker has acknowledged all of it when the call returns."""
        self._stop.set()
        self._thread.join()

    def sent(self, begin: float, end: float) -> set[int]:
        """The numbers that were sent between these times (monotonic seconds)."""
        return {number for number, at in dict(self.sent_at).items() if begin <= at < end}

    def _run(self) -> None:
        topic = json.loads((self.folder / "sender.json").read_text())["topic"]
        settings = read_settings(self.folder / "librdkafka.conf")
        producer = Producer({**settings, "linger.ms": 5, "log_level": 0})
        while not self._stop.wait(1 / PER_SECOND):
            number = len(self.sent_at)
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            producer.produce(topic, json.dumps({"ts": now, "n": number}).encode())
            self.sent_at[number] = time.monotonic()
            producer.poll(0)
        assert producer.flush(_PATIENCE_S) == 0
