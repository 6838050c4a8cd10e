"""The fused runs of one engine: who is in them, and how they are kept running (`secfilter.fusing`).

A query begins by itself. It joins the group of its relation when it is steady: then the fused run
starts again with it, from its place, and its own Spark query ends. Until the fused run runs, its
own one goes on. If a member changes or is not wanted any more, the fused run starts again without
it at the end of its batch, and the member goes on by itself where the fused run has ended. If the
fused run fails several times in a row, all its members run by themselves again.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from catalog.runs import FusedRun, QueryRun, Run, RunReport, fused
from secfilter.fusing import Able, Group, Groups, able, ranked, regrouped
from secfilter.kafka_options import Offsets
from secfilter.supervised import Means, Supervised
from secfilter.with_side import Seating

_SPLIT_AFTER = 3
"""After so many failures in a row the members run by themselves."""
_PART = 0.75
"""After this part of the time in which a run settles it is ready: its batches are short yet."""
_MOST_DOUBLINGS = 8
_MOMENT = 0.3
"""For this part of the time until a run is ready it waits for others that are ready soon."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """A wanted run. Its own part has been as it is since that time (s).

    `splits` is how often the fused run failed while the run was in it.
    """

    run: QueryRun
    able: Able | None
    since: float
    splits: int = 0
    # The value that was given last. It may be equal to `run`, which is kept then.
    given: QueryRun | None = None

    @property
    def own(self) -> object:
        """What makes it leave its group if it changes."""
        return own_part(self.run)


def own_part(run: QueryRun) -> object:
    """What is a run's own. The rest is common to all runs of its group."""
    return run.plan, run.outputs


class Fusion:
    """The groups of one engine. `means` are those of all its runs."""

    def __init__(self, means: Means, seating: Seating) -> None:
        self._means = means
        self._seating = seating
        self._clock = means.clock
        self._known: dict[str, _Known] = {}
        self._able: dict[str, Able] = {}
        self._alone: set[str] = set()
        self._groups: Groups = {}
        self._fused: dict[str, FusedRun] = {}
        self._mains: dict[str, Supervised] = {}
        self._said: dict[str, RunReport] = {}
        self._carried: dict[str, tuple[str, QueryRun]] = {}
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def want(self, wanted: Mapping[str, Run], broken: Collection[str] = ()) -> None:
        """Say which runs are wanted. A run that uses a topic that is `broken` is not among them."""
        before = self._known
        self._known = {
            name: self._seen(name, run) for name, run in wanted.items() if isinstance(run, QueryRun)
        }
        if _differ(before, self._known):
            self._able = self._able_runs()
            for name in sorted(self._known.keys() - before.keys()):
                self._rejoin(name)
        self._groups = regrouped(self._groups, self._now(), self._seating.prefix, self._clock())
        for name in {*self._groups, *self._mains}:
            self._main_of(name).want(self._run_of(name), broken)

    def step(self) -> None:
        """Do what can be done now without waiting."""
        for name, main in list(self._mains.items()):
            main.step()
            if main.failures >= _SPLIT_AFTER and name in self._groups:
                self._split(name)
            if main.gone:
                del self._mains[name]
                self._said.pop(name, None)
        self._carried = {
            each.name: (name, each)
            for name, main in self._mains.items()
            if isinstance(main.doing, FusedRun)
            for each in main.doing.members
        }

    def begins(self, name: str) -> Offsets:
        """From where its fused run carries the run."""
        return self._seating.seats.begins(name)

    @property
    def changes(self) -> bool:
        """Whether a fused run ends or is being started."""
        return any(main.changes for main in self._mains.values())

    def starts(self) -> int:
        """How many starts are under way that others wait for."""
        return sum(main.starts() for main in self._mains.values())

    def break_off(self) -> None:
        """End all fused runs now, inside their batches."""
        for main in self._mains.values():
            main.break_off()
        self._groups, self._carried = {}, {}

    def note_alone(self, name: str, runs: bool) -> None:
        """Note whether the run runs by itself. Only what runs can join a group."""
        (self._alone.add if runs else self._alone.discard)(name)

    def has_seat(self, name: str) -> bool:
        """Whether the run belongs to a group, whose fused run may be about to start."""
        return any(name in group.members for group in self._groups.values())

    def carried(self, name: str) -> QueryRun | None:
        """The run as the fused run has it that runs or is being started; None if none has it."""
        found = self._carried.get(name)
        return None if found is None else found[1]

    def main_of(self, name: str) -> Supervised | None:
        """The fused run that carries the run."""
        found = self._carried.get(name)
        return None if found is None else self._mains.get(found[0])

    def said_of(self, name: str) -> RunReport | None:
        """What was said last of the run's group."""
        groups = [group for group, each in self._groups.items() if name in each.members]
        carried = self._carried.get(name)
        names = groups if carried is None else [carried[0]]
        return next((self._said[each] for each in names if each in self._said), None)

    def was_seated(self, name: str) -> bool:
        """Whether a fused run of this engine had carried the run when it last ran."""
        group = self._seating.seats.group_of(name)
        return group is not None and group.startswith(f"{self._seating.prefix}-")

    def take_counts(self, name: str) -> Counter[str]:
        """What the fused run counted for the run since this was last asked."""
        return self._counts.pop(name, Counter())

    def _seen(self, name: str, run: QueryRun) -> _Known:
        before = self._known.get(name)
        if before is None:
            return _Known(run, able(run), self._clock(), given=run)
        if run is before.given:
            return before
        if run == before.run:
            return replace(before, given=run)
        now = replace(before, run=run, given=run)
        if now.own != before.own:
            return replace(now, able=able(run), since=self._clock())
        # These are compared again and again, and it is fast if they are the same objects.
        plan, outputs = before.run.plan, before.run.outputs
        return replace(now, run=replace(run, plan=plan, outputs=outputs))

    def _able_runs(self) -> dict[str, Able]:
        runs = {name: each.run for name, each in self._known.items()}
        found = {name: each.able for name, each in self._known.items() if each.able is not None}
        return ranked(runs, found)

    def _rejoin(self, name: str) -> None:
        """Give a run that had a seat when the engine ended its seat again."""
        group, own = self._seating.seats.group_of(name), self._able.get(name)
        if own is None or group is None or not self.was_seated(name):
            return
        before = self._groups.get(group, Group(own.key, (), self._clock()))
        if before.key == own.key:
            joined = replace(before, members=(*before.members, name))
            self._groups = {**self._groups, group: joined}

    def _now(self) -> dict[str, Able]:
        """What could run with others, as it is at this moment."""
        return {name: self._timed(each, self._known[name]) for name, each in self._able.items()}

    def _is_steady(self, name: str, known: _Known) -> bool:
        """Whether its fused run has it as it is."""
        carried = self._carried.get(name)
        return carried is None or own_part(carried[1]) == known.own

    def _timed(self, own: Able, known: _Known) -> Able:
        """The execution with what follows from the time since its last change."""
        name = known.run.name
        usual_s = self._means.pace.settle_s(name) * _PART
        left_s = usual_s * 2 ** min(known.splits, _MOST_DOUBLINGS) - (self._clock() - known.since)
        moment_s = usual_s * _MOMENT
        return replace(
            own,
            steady=self._is_steady(name, known),
            ready=left_s <= 0 and name in self._alone,
            soon=0 < left_s <= moment_s,
            waited=left_s <= -moment_s,
        )

    def _run_of(self, name: str) -> FusedRun | None:
        group = self._groups.get(name)
        if group is None:
            self._fused.pop(name, None)
            return None
        found = [self._known[each].run for each in group.members]
        before = self._fused.get(name)
        if before is None or not _are_same(before.members, found):
            self._fused[name] = fused(name, found)
        return self._fused[name]

    def _main_of(self, name: str) -> Supervised:
        if name not in self._mains:

            def report(said: RunReport) -> bool:
                return self._note(name, said)

            self._mains[name] = Supervised(name, replace(self._means, report=report))
        return self._mains[name]

    def _note(self, name: str, said: RunReport) -> bool:
        self._said[name] = replace(said, counted={})
        doing = self._mains[name].doing if name in self._mains else None
        members = [each.name for each in doing.members] if isinstance(doing, FusedRun) else []
        for key, number in said.counted.items():
            member, _, kind = key.rpartition("/")
            for each in [member] if member else members:
                self._counts[each][kind] += number
        return True

    def _split(self, group: str) -> None:
        members = self._groups[group].members
        _log.warning("%s fails: its %d members run by themselves", group, len(members))
        now = self._clock()
        for name in members:
            each = self._known.get(name)
            if each is not None:
                self._known[name] = replace(each, since=now, splits=each.splits + 1)
        self._groups = {name: each for name, each in self._groups.items() if name != group}
        self._mains[group].want(None)


def _differ(before: Mapping[str, _Known], now: Mapping[str, _Known]) -> bool:
    if before.keys() != now.keys():
        return True
    return any(before[name].run is not each.run for name, each in now.items())


def _are_same(before: Sequence[QueryRun], now: Sequence[QueryRun]) -> bool:
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))
