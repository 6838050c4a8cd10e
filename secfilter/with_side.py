"""A run under supervision with its side run: together they are one run to everybody else.

What the side run does and when it ends differs: see `secfilter.query_with_side` and
`secfilter.ingest_with_side`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from catalog.runs import NOT_ENDED, Run, RunReport
from secfilter.beside import side_name
from secfilter.kafka_options import Offsets
from secfilter.supervised import Means, Query, Starter, Supervised, nothing

STOPPED = "stopped"


class SeatKeeper(Protocol):
    """Knows which fused run carries which run (such as `Seats`)."""

    def group_of(self, run: str) -> str | None:
        """The fused run that carries the run; None if it runs by itself."""

    def begins(self, run: str) -> Offsets:
        """From where its fused run carries the run."""


@dataclass(frozen=True, slots=True)
class Seating:
    """The fused runs of one engine have names with this beginning, which no other engine has."""

    prefix: str
    seats: SeatKeeper


class SideKeeper(Protocol):
    """What is kept of runs and their side runs, by their names (such as `SideNotes`)."""

    def unfinished(self, name: str) -> Collection[str]:
        """The topics that the side run of a query feeds, none if it has nothing left to do."""

    def reached(self, name: str) -> Offsets:
        """Up to where all is delivered."""

    def finish(self, name: str) -> object:
        """Drop what is kept of it, while it does not run."""

    def held(self, name: str) -> Collection[str]:
        """The topics whose offsets the checkpoint of that run holds."""


class Main(Protocol):
    """A main run, with the meanings of `Supervised`."""

    held: bool
    """Whether it goes on as it is, also if it should change."""

    @property
    def told(self) -> bool: ...

    @property
    def gone(self) -> bool: ...

    @property
    def mark(self) -> str: ...

    @property
    def doing(self) -> Run | None: ...

    @property
    def began(self) -> Offsets | None: ...

    @property
    def flows(self) -> bool: ...

    @property
    def changes(self) -> bool: ...

    def starts(self) -> bool: ...

    def want(self, run: Run | None, broken: Collection[str] = ()) -> None: ...

    def step(self) -> None: ...

    def break_off(self) -> None: ...


# Makes the main run of that name.
MakeMain = Callable[[str, Means], Main]


@dataclass(frozen=True, slots=True)
class Starts:
    """How queries are started: those of main runs, and those of side runs.

    `kept` knows how far each side run has come. `prepare` as in `Means`. With `seating`, queries of
    one relation run together (`secfilter.fusion`).
    """

    main: Starter
    side: Callable[[Run], Query]
    kept: SideKeeper
    prepare: Callable[[Run], object] = nothing
    seating: Seating | None = None


class WithSide(ABC):
    """What is wanted of one run, and what its main run and its side run do about it.

    `main_means` are those of the main run, which `make_main` makes. `means` are those of the side
    run, and report for both.
    """

    def __init__(
        self,
        name: str,
        means: Means,
        main_means: Means,
        starts: Starts,
        make_main: MakeMain = Supervised,
    ) -> None:
        self.name = name
        self._report = means.report
        self._kept = starts.kept
        self._wanted: Run | None = None
        self._broken: Collection[str] = ()
        self._said: RunReport | None = None
        self._main_said = RunReport(name, "starting")
        self._side_said = RunReport(side_name(name), STOPPED)
        self._main = make_main(name, replace(main_means, report=self._note_main))

        def start(run: Run, _settled: bool) -> Query:
            return starts.side(run)

        self._side_means = replace(means, start=start, report=self._note_side)
        self._side: Supervised | None = None

    @property
    def told(self) -> bool:
        """Whether what is done and which topics are used is reported as it is."""
        side_told = self._side is None or self._side.told
        return self._main.told and side_told and self._said == self._now()

    @property
    def gone(self) -> bool:
        """Whether it is not wanted, nothing of it runs, and that is reported."""
        return self._main.gone and self._side is None and self.told

    @property
    def changes(self) -> bool:
        """Whether a query of it ends or is being started."""
        return self._main.changes or (self._side is not None and self._side.changes)

    def starts(self) -> bool:
        """Whether a start is under way that others wait for."""
        return self._main.starts() or (self._side is not None and self._side.starts())

    def want(self, run: Run | None, broken: Collection[str] = ()) -> None:
        """As `Supervised.want`."""
        self._wanted, self._broken = run, broken
        self._main.want(run, broken)

    def step(self) -> None:
        """Do what can be done now without waiting."""
        self._main.step()
        self._keep_side()
        if self._main.told and (self._side is None or self._side.told):
            self._tell({})

    def break_off(self) -> None:
        """End both now, inside their batches; both go on there later."""
        if self._side is not None:
            self._side.break_off()
            self._side = None
        self._main.break_off()

    @abstractmethod
    def _keep_side(self) -> None:
        """Let the side run do what it should, and end where it has done its work."""

    @abstractmethod
    def _do_all(self) -> bool:
        """Whether both, while they run, do all that is wanted."""

    @abstractmethod
    def _counted_beside(self, report: RunReport) -> Mapping[str, int]:
        """What the side run withheld that the main run does not count."""

    def _step_side(self, run: Run | None) -> None:
        """Let the side run do that, or nothing; it begins if there is none."""
        if self._side is None:
            if run is None:
                return
            self._side = Supervised(side_name(self.name), self._side_means)
        self._side.want(run, self._broken)
        self._side.step()
        if self._side.gone:
            self._side = None

    def _note_main(self, report: RunReport) -> bool:
        self._main_said = replace(report, counted={})
        return self._tell(report.counted)

    def _note_side(self, report: RunReport) -> bool:
        self._side_said = replace(report, counted={})
        return self._tell(self._counted_beside(report))

    def _now(self) -> RunReport:
        """What is to be reported of both, but for the counts."""
        main, side = self._main_said, self._side_said
        state, message, mark = main.state, main.message, main.fingerprint
        if state == STOPPED and side.state != STOPPED:
            state, message, mark = "running", side.message, ""
        if side.message == NOT_ENDED:
            message = NOT_ENDED
        both = self._side is not None and self._side.began is not None
        if both and self._main.began is not None and self._do_all():
            mark = self._main.mark
        used = main.topics | side.topics
        said = RunReport(self.name, state, message, mark, used, delivered_ms=main.delivered_ms)
        return replace(said, through=main.through)

    def _tell(self, counted: Mapping[str, int]) -> bool:
        """Report what has changed; whether nothing is left to be reported."""
        now = self._now()
        if now == self._said and not counted:
            return True
        if not self._report(replace(now, counted=dict(counted))):
            return False
        self._said = now
        return True
