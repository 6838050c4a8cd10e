"""A plain Kafka consumer that knows only what `secadmin subscribe` wrote."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from deploy.errors import DeployError
from secadmin.cli.kafka.bounded_close import close
from secadmin.cli.kafka.missed_topics import MissedTopics
from secadmin.cli.kafka.retaking import Retaking

# A topic that may not be read is, to a consumer that follows a pattern, no topic at all. The group
# of an access goes with the access.
_REFUSALS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One record as it arrived."""

    value: dict[str, Any]
    label: str
    id: str
    topic: str
    offset: int


@dataclass
class Listener:
    """Consumes in a thread until it is closed; `deliveries` grows, `refusals` counts errors."""

    folder: Path
    group: str = "listener"
    overrides: dict[str, Any] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    refusals: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _retaking: Retaking = field(default_factory=Retaking)
    _missed: MissedTopics = field(default_factory=MissedTopics)
    _thread: threading.Thread | None = None

    def start(self) -> Listener:
        """Start to consume, from the beginning of what may be read."""
        self._thread = threading.Thread(target=self._run, name=f"listen {self.folder.name}")
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop to consume."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def results(self) -> int:
        """How many different results have arrived: a repeated one has the id that it had before."""
        return len({delivery.id for delivery in tuple(self.deliveries)})

    def wait_for(self, count: int, timeout_s: float = 120.0) -> None:
        """Wait until at least `count` results have arrived. Raises DeployError after the time."""
        deadline = time.monotonic() + timeout_s
        while (arrived := self.results) < count:
            if time.monotonic() > deadline:
                raise DeployError(
                    f"{self.folder.name}: {arrived} of {count} results arrived in {timeout_s:.0f} s"
                )
            time.sleep(0.05)

    def wait_for_refusal(self, timeout_s: float = 60.0) -> None:
        """Wait until Kafka has refused this consumer. Raises DeployError after the time."""
        deadline = time.monotonic() + timeout_s
        while not self.refusals:
            if time.monotonic() > deadline:
                raise DeployError(f"{self.group} was not refused in {timeout_s:.0f} s")
            time.sleep(0.05)

    def _run(self) -> None:
        subscription = json.loads((self.folder / "subscription.json").read_text())
        settings = {
            **read_settings(self.folder / "librdkafka.conf"),
            "group.id": subscription["group_prefix"] + self.group,
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **self.overrides,
        }
        consumer = Consumer(settings)
        topic = subscription.get("topic_pattern") or subscription["topic"]
        subscribe = partial(consumer.subscribe, [topic])
        subscribe()
        try:
            while not self._stop.is_set():
                self._missed.serve(consumer, topic, subscribe)
                self._retaking.serve(consumer, subscribe)
                self._take(consumer.poll(0.1))
        finally:
            close(consumer)

    def _take(self, message: Message | None) -> None:
        if message is None:
            return
        error = message.error()
        if error is not None:
            if error.code() not in _REFUSALS:
                raise KafkaException(error)
            self.refusals += 1
            self._retaking.denied()
            return
        headers = dict(message.headers() or [])
        if "fence" in headers:
            return
        self.deliveries.append(
            Delivery(
                value=json.loads(message.value() or b""),
                label=_text(headers["label"]),
                id=_text(headers["id"]),
                topic=message.topic() or "",
                offset=message.offset() or 0,
            )
        )


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a file for the librdkafka family: `name=value` lines."""
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, value in pairs}


def _text(header: str | bytes | None) -> str:
    return header.decode() if isinstance(header, bytes) else header or ""
