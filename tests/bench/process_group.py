"""What a program of several processes costs, and how it is made to wait."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PSS = re.compile(r"^Pss: +(\d+) kB", re.MULTILINE)
# In /proc/<pid>/stat, counted after the command's closing bracket.
_GROUP, _TIMES = 2, slice(11, 15)


class ProcessGroup:
    """All processes of some groups: of a Spark driver in Python and its JVM, for example."""

    def __init__(self, *groups: int) -> None:
        """`groups` are the ids of the groups, which are those of their first processes."""
        self._groups = groups

    def cpu_s(self) -> float:
        """CPU seconds that the groups have used, user and system, ended children included."""
        return sum(sum(map(int, fields[_TIMES])) for _, fields in self._members()) / _TICKS

    def memory_gb(self) -> float:
        """Their memory in GB. What processes share counts once (proportional set size)."""
        found = (_PSS.search(_rollup(folder)) for folder, _ in self._members())
        return sum(int(size[1]) for size in found if size) / 2**20

    def pause(self) -> None:
        """Let none of it run, so that another one can be measured beside it."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End all of it now."""
        self._signal(signal.SIGKILL)

    def _members(self) -> Iterator[tuple[Path, list[str]]]:
        """The folder in /proc of each process, and the fields of its state."""
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = file.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            if int(fields[_GROUP]) in self._groups:
                yield file.parent, fields

    def _signal(self, number: signal.Signals) -> None:
        for group in self._groups:
            os.killpg(group, number)


def _rollup(folder: Path) -> str:
    """What a process has in memory; nothing if it has ended meanwhile."""
    try:
        return (folder / "smaps_rollup").read_text()
    except OSError:
        return ""
