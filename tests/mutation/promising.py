"""Which tests run first on a mutant: those that have noticed much of late, and take little time.

A mutant is done with the first test that fails. Mutants come in the order of the module's lines, so
a test that noticed the last ones will often notice the next.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import IO

import pytest

_REMEMBERED = 20
_SHORTEST_S = 0.005


@dataclass
class Past:
    """What is known of the tests: how long each takes, and which noticed the last mutants."""

    seconds: dict[str, float] = field(default_factory=dict)
    noticed: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def ordered(self, tests: list[str]) -> list[str]:
        """The tests by what they promise for their time, most first."""
        counted = Counter(self.noticed)

        def promise(test: str) -> float:
            return (counted[test] + 0.1) / (self.seconds.get(test, 0) + _SHORTEST_S)

        return sorted(tests, key=promise, reverse=True)

    def learn(self, told: IO[bytes]) -> None:
        """Take what a `Teller` has said of the tests of one mutant."""
        told.seek(0)
        took = Counter[str]()
        for line in told.read().splitlines():
            test, seconds, failed = json.loads(line)
            took[test] += seconds
            if failed:
                self.noticed.append(test)
        if not self.seconds:
            # All ran, on the module as it is. A mutant changes how long a test takes.
            self.seconds = dict(took)


class Teller:
    """A plugin of pytest that runs the tests in the order of `past`, and tells how each went."""

    def __init__(self, past: Past, told: IO[bytes]) -> None:
        self._past, self._told = past, told

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the tests in their order."""
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self._past.ordered(list(found))]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell it at once: the process may be killed while the next test runs."""
        line = json.dumps([report.nodeid, report.duration, report.failed])
        os.write(self._told.fileno(), line.encode() + b"\n")
