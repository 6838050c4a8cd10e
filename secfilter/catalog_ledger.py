"""What an engine reads of the catalog and writes there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from catalog import trials
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
    """What the catalog wants of an engine, read anew only when its generation has changed.

    And what the engine reports. `reached` is called whenever the catalog has taken a heartbeat.
    """

    def __init__(
        self, catalog: Catalog, engine: str, reached: Callable[[int], object] = lambda _beats: None
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._reached = reached
        self._serves = False
        self._seen: int | None = None
        self._runs: Sequence[Run] = ()
        self._applied: int | None = None

    def begin(self, *, died: bool) -> None:
        """Take back what the engine's last process said: nothing runs yet. Raises Unavailable.

        `died` tells that the last process did not end as it should.
        """
        with self._catalog.bookkeeping() as session:
            forget_runs(session, self._engine)
            trials.begin(session, self._engine, died=died)
        self.beat()

    def serve(self) -> None:
        """From now on the engine can run what it should."""
        self._serves = True

    def end(self) -> None:
        """Tell the catalog that the engine ends as it should. Raises Unavailable."""
        with self._catalog.bookkeeping() as session:
            trials.end(session, self._engine)

    def awaits_trial(self) -> bool:
        """Whether there is something to run in probation. Raises Unavailable."""
        with self._catalog.read() as session:
            return trials.awaits_trial(session)

    def runs(self) -> Sequence[Run]:
        """What should run now."""
        with self._catalog.read() as session:
            now = generation(session)
            if now != self._seen:
                self._runs, self._seen = wanted_runs(session, self._engine), now
        return self._runs

    def applied(self) -> None:
        """Tell the catalog that of the generation seen last each run has told what it uses."""
        if self._seen is not None and self._seen != self._applied:
            with self._catalog.bookkeeping() as session:
                report_applied(session, self._engine, self._seen)
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
            report_faults(session, self._engine, faults, self._catalog.clock())

    def beat(self) -> None:
        """Say that the engine is alive, and go on with executions that are on trial."""
        with self._catalog.bookkeeping() as session:
            beats = beat(session, self._engine)
            if self._serves:
                trials.keep(session, self._engine)
        self._reached(beats)
