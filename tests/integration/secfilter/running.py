"""A runner at work over an engine of the data plane, without a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from catalog.runs import Run, RunReport, fingerprint
from secfilter.queries import Engine
from secfilter.runner import POLL_S, Runner
from secfilter.topic_watch import TopicWatch
from secfilter.with_side import Seating, Starts


@dataclass
class Notes:
    """What a runner is told and tells."""

    wanted: Sequence[Run] = ()
    said: dict[str, RunReport] = field(default_factory=dict)

    def runs(self) -> Sequence[Run]:
        return self.wanted

    def report(self, report: RunReport) -> None:
        self.said[report.name] = report

    def feeds(self, run: Run) -> bool:
        """Whether the run is told to do all that is wanted."""
        said = self.said.get(run.name)
        return said is not None and (said.state, said.fingerprint) == ("running", fingerprint(run))

    def applied(self) -> None: ...

    def faults(self, faults: Mapping[str, str]) -> None: ...

    def beat(self) -> None: ...

    def turned(self) -> None: ...


@contextmanager
def running(engine: Engine, *, to_the_end: bool = True, fuses: bool = False) -> Iterator[Notes]:
    """Let a runner work in a thread. At the end its batches end too, or are broken off.

    It `fuses` queries that may run together, or runs each by itself.
    """
    made, stop = Notes(), Event()
    watch = TopicWatch(engine.positions.partitions)
    seating = Seating("fused-query-1", engine.seats) if fuses else None
    starts = Starts(*(engine.running, engine.running_side, engine.sides, engine.prepare, seating))
    runner = Runner(made, starts, watch, pace=engine.pace)

    def work() -> None:
        while not stop.wait(POLL_S):
            runner.step()
        if to_the_end:
            runner.end()
        else:
            runner.break_off()

    thread = Thread(target=work)
    thread.start()
    yield made
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
