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

# The number and the stream of a record stand in the JSON value, wherever the client prints that.
_VALUE = re.compile(r"\{.*\}")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record's stream and number in it, and when the client printed it (monotonic seconds)."""

    stream: str
    number: int
    at: float


@dataclass
class Reader:
    """Runs the command until it is closed; each line that it prints is a record, or an error."""

    name: str
    command: list[str]
    log: Path
    environment: dict[str, str] | None = None
    arrivals: list[Arrival] = field(default_factory=list)

    def __enter__(self) -> Reader:
        with self.log.open("wb") as errors:
            self._process = subprocess.Popen(
                self.command, stdout=subprocess.PIPE, stderr=errors, env=self.environment
            )
        self._thread = threading.Thread(target=self._read, name=f"read {self.name}")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(30)
        self._thread.join()

    def of(self, stream: str) -> list[Arrival]:
        """What has arrived of a stream, in the order of arrival."""
        return [arrival for arrival in list(self.arrivals) if arrival.stream == stream]

    def numbers(self, stream: str) -> set[int]:
        """The numbers of the stream's records that have arrived."""
        return {arrival.number for arrival in self.of(stream)}

    def longest_wait_s(self, stream: str) -> float:
        """The longest time between two arrivals of new records of the stream."""
        times = [arrival.at for arrival in self.of(stream)]
        return max(later - earlier for earlier, later in pairwise(times))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = _VALUE.search(line.decode(errors="replace"))
            if found is not None:
                value = json.loads(found.group())
                self.arrivals.append(Arrival(value["stream"], value["n"], time.monotonic()))
