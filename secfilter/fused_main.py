"""The main run of a query that may run with others: its own Spark query, or a fused run's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from catalog.runs import Run, RunReport, fingerprint, topics_of
from secfilter.fusion import Fusion
from secfilter.kafka_options import Offsets
from secfilter.seats import later
from secfilter.supervised import Means, Supervised

_STOPPED, _STARTING, _RUNNING = "stopped", "starting", "running"


class FusedMain:
    """To everybody else it is one run, as `Supervised` is.

    While it is *seated*, a fused run carries it, or is about to go on with it. Then its own Spark
    query does not run, or ends. That of a fused run which starts with it is planned first, and so
    is its code. So until it has begun to read, the run's own one goes on as it is.
    """

    def __init__(self, name: str, means: Means, fusion: Fusion) -> None:
        self.name = name
        self._fusion = fusion
        self._report = means.report
        self._alone = Supervised(name, replace(means, report=self._note_alone))
        self._alone_said = RunReport(name, _STARTING)
        self._seated = fusion.was_seated(name)
        self._wanted: Run | None = None
        self._mark = ""
        self._broken: Collection[str] = ()
        # The run as its fused run has it, and its fingerprint.
        self._member: tuple[Run | None, str] = (None, "")
        self._counted: Counter[str] = Counter()
        self._said: RunReport | None = None
        self.held = False

    @property
    def told(self) -> bool:
        """Whether what it does and which topics it uses is reported as it is."""
        return self._alone.told and self._said == self._now()

    @property
    def gone(self) -> bool:
        """Whether it is not wanted, nothing of it runs, and that is reported."""
        carried = self._seated or self._fusion.main_of(self.name) is not None
        return self._wanted is None and not carried and self._alone.gone and self.told

    @property
    def mark(self) -> str:
        """The fingerprint of what is wanted."""
        return self._mark

    @property
    def doing(self) -> Run | None:
        """The run whose Spark query runs or is being started."""
        carried = self._fusion.carried(self.name)
        return carried if self._is_carried() else self._alone.doing or carried

    @property
    def began(self) -> Offsets | None:
        """Where the Spark query that runs began to deliver; None while none runs."""
        main = self._carrier()
        if main is None or main.began is None:
            return self._alone.began
        return later(main.began, self._fusion.begins(self.name))

    @property
    def flows(self) -> bool:
        """Whether the Spark query that runs has begun to read."""
        return self._carrier() is not None or self._alone.flows

    @property
    def changes(self) -> bool:
        """Whether its own Spark query ends or is being started."""
        return self._alone.changes

    def starts(self) -> bool:
        """Whether a start of its own Spark query is under way that others wait for."""
        return self._alone.starts()

    def want(self, run: Run | None, broken: Collection[str] = ()) -> None:
        """As `Supervised.want`."""
        self._broken = broken
        if run is not self._wanted:
            self._wanted, self._mark = run, "" if run is None else fingerprint(run)

    def step(self) -> None:
        """Do what can be done now without waiting."""
        carried = self._is_carried()
        if carried:
            self._seated = True
        elif self._fusion.main_of(self.name) is None and not self._fusion.has_seat(self.name):
            self._seated = False
        # What its fused run delivers comes twice until it has ended. So it ends in its batch.
        broken = topics_of(self._alone.doing) if carried else self._broken
        joins = not self._seated and self._fusion.main_of(self.name) is not None
        self._alone.held = joins or self.held
        self._alone.want(None if self._seated else self._wanted, broken)
        self._alone.step()
        self._fusion.note_alone(self.name, not self._seated and self._alone.began is not None)
        self._tell()

    def break_off(self) -> None:
        """End its own Spark query now, inside its batch."""
        self._wanted, self._mark, self._seated = None, "", False
        self._alone.break_off()
        self._tell()

    def _carrier(self) -> Supervised | None:
        """The fused run that carries it: once it reads, or if nothing else goes on meanwhile."""
        main = self._fusion.main_of(self.name)
        if main is None or main.began is None:
            return None
        goes_on = self._wanted is not None and self._alone.began is not None
        return None if goes_on and not main.flows else main

    def _is_carried(self) -> bool:
        return self._carrier() is not None

    def _note_alone(self, report: RunReport) -> bool:
        """Take over what its own one says. What cannot be reported now, each step tries again."""
        self._alone_said = replace(report, counted={})
        self._counted.update(report.counted)
        self._tell()
        # Its counts are taken over in any case: offered again, they would count twice.
        return True

    def _now(self) -> RunReport:
        """What is to be reported, but for the counts."""
        alone, member = self._alone_said, self._fusion.carried(self.name)
        topics = alone.topics | topics_of(self._wanted) | topics_of(member)
        if not self._seated:
            return replace(alone, topics=topics)
        said = self._fusion.said_of(self.name) or RunReport(self.name, _STARTING)
        # While its fused run runs something else, this run is not there yet.
        state = _STARTING if said.state in (_STOPPED, _RUNNING) else said.state
        if not self._is_carried():
            return RunReport(self.name, state, said.message, self._mark, topics)
        return RunReport(self.name, _RUNNING, said.message, self._mark_of(member), topics)

    def _mark_of(self, member: Run | None) -> str:
        if member is self._wanted:
            return self._mark
        if member is not self._member[0]:
            self._member = member, "" if member is None else fingerprint(member)
        return self._member[1]

    def _tell(self) -> None:
        """Report what has changed; what could not be reported is tried again."""
        self._counted.update(self._fusion.take_counts(self.name))
        now, counts = self._now(), +self._counted
        if now == self._said and not counts:
            return
        if self._report(replace(now, counted=dict(counts))):
            self._said = now
            self._counted.clear()
