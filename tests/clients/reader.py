"""A Kafka client in a process of its own, and what it has read so far, with the times."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType

# Each client prints the JSON value of a record somewhere in a line.
_VALUE = re.compile(r"\{.*\}")
_ERROR = "error\t"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record's stream and number in it, and when the client printed it (monotonic seconds)."""

    stream: str
    number: int
    at: float


@dataclass
class Reader:
    """Runs the command until it is closed; each line that it prints is a record, or an error.

    A command that ends is run again after a second if `again` says so; `ends` counts how often.
    """

    name: str
    command: list[str]
    log: Path
    again: bool = False
    environment: dict[str, str] | None = None
    arrivals: list[Arrival] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ends: int = 0
    _closing: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Reader:
        self._thread = threading.Thread(target=self._run, name=f"read {self.name}")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        while self._thread.is_alive():
            if self._process is not None:
                self._process.kill()
            self._thread.join(0.1)

    def of(self, stream: str) -> list[Arrival]:
        """What has arrived of a stream, in the order of arrival."""
        return [arrival for arrival in list(self.arrivals) if arrival.stream == stream]

    def numbers(self, stream: str) -> set[int]:
        """The numbers of the stream's records that have arrived."""
        return {arrival.number for arrival in self.of(stream)}

    def longest_wait_s(self, stream: str, since: float) -> float:
        """The longest time between two arrivals of the stream since then (monotonic seconds)."""
        times = [arrival.at for arrival in self.of(stream) if arrival.at >= since]
        return max((later - earlier for earlier, later in pairwise(times)), default=float("inf"))

    def _run(self) -> None:
        with self.log.open("wb") as errors:
            while not self._closing.is_set():
                with subprocess.Popen(
                    self.command, stdout=subprocess.PIPE, stderr=errors, env=self.environment
                ) as self._process:
                    self._read(self._process)
                if self._closing.is_set() or not self.again:
                    return
                self.ends += 1
                self._closing.wait(1)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode(errors="replace")
            found = _VALUE.search(line)
            if line.startswith(_ERROR):
                self.errors.append(line.removeprefix(_ERROR).strip())
            elif found is not None:
                value = json.loads(found.group())
                self.arrivals.append(Arrival(value["stream"], value["n"], time.monotonic()))
