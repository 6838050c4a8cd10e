"""The connection of an engine to the catalog: what it reads there, and its reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from catalog import trials
from catalog.engines import PROBATION
from catalog.outage import missing_tables_translated
from catalog.past_runs import past_runs
from catalog.pulse import beat
from catalog.runs import Run, RunReport
from catalog.sender_state import draining, report_drained, still_read, unfinished
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
    """Reads the wanted runs of one engine, and writes its reports.

    The runs are read again only after the generation has changed. `reached` is called each time
    that the catalog has accepted a heartbeat, and `turned` at each turn of the engine's loop.
    """

    def __init__(
        self,
        catalog: Catalog,
        engine: str,
        reached: Callable[[], object] = lambda: None,
        turned: Callable[[], object] = lambda: None,
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._reached = reached
        self.turned = turned
        self._serves = False
        self._seen: int | None = None
        self._runs: Sequence[Run] = ()
        self._applied: int | None = None
        # Whether an execution awaits a trial, and in which generation that was looked up.
        self._awaits, self._looked = False, -1

    def note_death(self) -> None:
        """Report that the engine's last process did not end normally. Raises Unavailable."""
        with self._catalog.bookkeeping() as session:
            trials.note_death(session, self._engine)

    def begin(self) -> None:
        """Cancel the reports of the engine's last process: nothing runs yet. Raises Unavailable."""
        with missing_tables_translated(), self._catalog.bookkeeping() as session:
            forget_runs(session, self._engine)
            trials.begin(session, self._engine)
        self.beat()

    def serve(self) -> None:
        """Note that the engine can run its runs from now on."""
        self._serves = True

    def end(self) -> None:
        """Report that the engine ends normally. Raises Unavailable."""
        with self._catalog.bookkeeping() as session:
            trials.end(session, self._engine)

    def awaits_trial(self) -> bool:
        """Whether an execution waits to run in `probation`. Raises Unavailable."""
        with self._catalog.read() as session:
            now = generation(session)
            if now != self._looked:
                self._awaits, self._looked = trials.awaits_trial(session), now
            return self._awaits

    def trial_starts(self) -> bool:
        """Whether an execution is on trial that does not run there yet. Raises Unavailable."""
        with self._catalog.read() as session:
            return trials.trial_starts(session)

    def runs(self) -> Sequence[Run]:
        """The wanted runs of this engine now. If they have changed, `probation` goes on at once."""
        with self._catalog.read() as session:
            now = generation(session)
            changed = now != self._seen
            if changed:
                self._runs, self._seen = wanted_runs(session, self._engine), now
        if changed and self._serves and self._engine == PROBATION:
            with self._catalog.bookkeeping() as session:
                trials.keep(session, self._engine)
        return self._runs

    @property
    def has_nothing(self) -> bool:
        """Whether no run was wanted when this was last looked up. Any thread may ask."""
        return not self._runs

    def applied(self) -> None:
        """Report that each run of the newest generation has reported the topics that it uses."""
        if self._seen is not None and self._seen != self._applied:
            with self._catalog.bookkeeping() as session:
                report_applied(session, self._engine, self._seen)
            self._applied = self._seen

    def report(self, report: RunReport) -> None:
        """Write a report on a run."""
        with self._catalog.bookkeeping() as session:
            report_status(session, report, self._catalog.clock())

    def draining(self) -> frozenset[int]:
        """The draining senders: they may not send any more, but unread records may be left."""
        with self._catalog.read() as session:
            return draining(session)

    def still_read(self, senders: Collection[int]) -> frozenset[int]:
        """Which of the senders are not gone, and neither is their stream."""
        with self._catalog.read() as session:
            return still_read(session, senders)

    def unfinished(self, streams: Collection[int]) -> dict[int, frozenset[int]]:
        """The senders of each of these streams that are not gone."""
        with self._catalog.read() as session:
            return unfinished(session, streams)

    def past_runs(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """As `catalog.past_runs.past_runs`. Raises Unavailable."""
        with self._catalog.read() as session:
            return past_runs(session, names)

    def drained(self, senders: Collection[int]) -> None:
        """Report that ingest has read all records of these senders."""
        with self._catalog.bookkeeping() as session:
            report_drained(session, senders)

    def faults(self, faults: Mapping[str, str]) -> None:
        """Report the topics that differ from what the catalog says."""
        with self._catalog.bookkeeping() as session:
            report_faults(session, self._engine, faults, self._catalog.clock())

    def beat(self) -> None:
        """Report that the engine is alive, and continue the trials of executions."""
        with self._catalog.bookkeeping() as session:
            beat(session, self._engine)
            if self._serves:
                trials.keep(session, self._engine)
        self._reached()
