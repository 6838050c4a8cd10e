"""What the runner reads of the catalog and writes there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from catalog.pulse import beat
from catalog.runs import Run, RunReport
from catalog.sender_state import draining, report_drained, still_read
from catalog.store import Catalog
from catalog.wanted import (
    forget_runs,
    generation,
    report_applied,
    report_faults,
    report_status,
    wanted_runs,
)


class CatalogLedger:
    """What the catalog wants, read anew only when its generation has changed; and reports."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen: int | None = None
        self._runs: Sequence[Run] = ()
        self._applied: int | None = None

    def begin(self) -> None:
        """Take back what another runner said: nothing runs yet. Raises Unavailable."""
        with self._catalog.bookkeeping() as session:
            forget_runs(session)

    def runs(self) -> Sequence[Run]:
        """What should run now."""
        with self._catalog.read() as session:
            now = generation(session)
            if now != self._seen:
                self._runs, self._seen = wanted_runs(session), now
        return self._runs

    def applied(self) -> None:
        """Tell the catalog that of the generation seen last each run has told what it uses."""
        if self._seen is not None and self._seen != self._applied:
            with self._catalog.bookkeeping() as session:
                report_applied(session, self._seen)
            self._applied = self._seen

    def report(self, report: RunReport) -> None:
        """Write what a run does."""
        with self._catalog.bookkeeping() as session:
            report_status(session, report, self._catalog.clock())

    def draining(self) -> frozenset[int]:
        """The senders that may not send any more, and of which there may be something left."""
        with self._catalog.read() as session:
            return draining(session)

    def still_read(self, senders: Collection[int]) -> frozenset[int]:
        """Which of the senders are not gone, and neither is their stream."""
        with self._catalog.read() as session:
            return still_read(session, senders)

    def drained(self, senders: Collection[int]) -> None:
        """Write that all that these sent is taken."""
        with self._catalog.bookkeeping() as session:
            report_drained(session, senders)

    def faults(self, faults: Mapping[str, str]) -> None:
        """Write which topics are not what the catalog says."""
        with self._catalog.bookkeeping() as session:
            report_faults(session, faults, self._catalog.clock())

    def beat(self) -> None:
        """Say that the runner is alive."""
        with self._catalog.bookkeeping() as session:
            beat(session)
