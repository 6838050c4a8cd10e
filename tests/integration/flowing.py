"""Numbered records that flow to two streams, and subscribers that read all the time."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Producer
from typer.testing import CliRunner

from deploy.scenario.listener import Listener, read_settings
from deploy.scenario.person import Person
from deploy.stack import Stack
from secadmin.cli.main import app

PAUSE_S, TIMEOUT_S = 1 / 40, 120.0


class Typist(Person):
    """A person whose commands run in this process: a process for each takes most of a second."""

    def attempt(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run `secadmin` and return how it ended; its crash is the test's."""
        environment = {
            "SECADMIN_URL": self.url,
            "SECADMIN_CA": str(self.ca),
            "SECADMIN_CONFIG": str(self.folder / "profile"),
        }
        runner = CliRunner(env=environment)
        done = runner.invoke(app, arguments, input=text, catch_exceptions=False)
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    @classmethod
    def administrator(cls, stack: Stack) -> Self:
        """The first administrator, for the first time logged in."""
        admin = cls.at(stack, "admin")
        admin.log_in(stack.settings.secadmin.first_password_file.read_text().strip())
        return admin


def sender_of(folder: Path) -> tuple[Producer, str]:
    """A producer with the files of a sender's access, and the topic that it sends to."""
    settings = {**read_settings(folder / "librdkafka.conf"), "log_level": 0}
    return Producer(settings), json.loads((folder / "sender.json").read_text())["topic"]


def now_text() -> str:
    """The time now, as records have it."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{now % 1 * 1e6:06.0f}Z"


@dataclass
class Flow:
    """Sends numbered records to all streams until it ends."""

    folders: Mapping[str, Path]
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to send."""
        for stream in self.folders:
            thread = threading.Thread(target=self._run, args=(stream,), name=f"send to {stream}")
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Stop to send, and wait until all is acknowledged."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def count(self, stream: str) -> int:
        """How many were sent by now: their numbers are smaller."""
        return self.counts[stream]

    def _run(self, stream: str) -> None:
        producer, topic = sender_of(self.folders[stream])
        while not self._stop.wait(PAUSE_S):
            value = {"ts": now_text(), "stream": stream, "n": self.counts[stream]}
            self.counts[stream] += 1
            producer.produce(topic, json.dumps(value).encode())
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0


@dataclass
class Arrivals(list[Any]):
    """The deliveries of a listener, each with when it came."""

    times: list[float] = field(default_factory=list)

    def append(self, delivery: Any) -> None:
        """One more has come."""
        self.times.append(time.monotonic())
        super().append(delivery)


@dataclass
class Reader:
    """A subscription with a client that runs all the time.

    A result has the number `n` of its record, or a window's has the numbers from `low` to `high`.
    """

    person: Person
    output: str
    arrivals: Arrivals
    listener: Listener

    @classmethod
    def begin(cls, person: Person, output: str) -> Reader:
        """Subscribe and read."""
        arrivals = Arrivals()
        listener = Listener(person.subscribe(output), deliveries=arrivals).start()
        return cls(person, output, arrivals, listener)

    def numbers(self, stream: str) -> set[int]:
        """The numbers of the stream's records that came, or that are in the windows that came."""
        values = [delivery.value for delivery in tuple(self.arrivals)]
        return {n for value in values if value["stream"] == stream for n in _numbers(value)}

    def forget(self) -> None:
        """Leave out what has come by now: a test that takes long asks for newer numbers alone."""
        count = len(self.arrivals.times)
        del self.arrivals[:count], self.arrivals.times[:count]

    def topics(self, stream: str) -> set[str]:
        """The topics in which records of a stream came."""
        deliveries = tuple(self.arrivals)
        return {each.topic for each in deliveries if each.value["stream"] == stream}

    def longest_wait(self, stream: str) -> float:
        """The longest time between two results of the stream (seconds)."""
        arrived = zip(tuple(self.arrivals), tuple(self.arrivals.times), strict=False)
        times = [at for delivery, at in arrived if delivery.value["stream"] == stream]
        return max(b - a for a, b in pairwise(times))

    def has(self, stream: str, begin: int, end: int) -> bool:
        """Whether all of the stream from one number up to before another one have come."""
        return self.numbers(stream) >= set(range(begin, end))

    def access(self) -> dict[str, Any]:
        """The subscription as it is listed."""
        (row,) = (row for row in self.person.ask("accesses") if row["name"] == self.output)
        return dict(row)

    def is_fed(self) -> bool:
        """Whether all results come to it."""
        return bool(self.access()["fed"])


def _numbers(value: Mapping[str, int]) -> range:
    if "n" in value:
        return range(value["n"], value["n"] + 1)
    # A window with a hole in it counts as none of its numbers.
    whole = value["high"] - value["low"] + 1 == value["many"]
    return range(value["low"], value["high"] + 1) if whole else range(0)


def await_that(
    condition: Callable[[], bool],
    what: str,
    timeout_s: float = TIMEOUT_S,
    why: Callable[[], str] = str,
) -> None:
    """Wait for it. `why` says what is known of it where it does not come."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} {why()}".strip()
        time.sleep(0.05)
