"""Where an execution goes on that ran with others for a while.

All engines share the checkpoints. A run that a fused run carries has a *seat* there: a file beside
its own checkpoint, with the name of the fused run and the offsets from which it is carried. All
before the checkpoint of the fused run is delivered, for each of its seats. All before the offsets
of the seat was delivered before. So an execution has come as far as the latest of these offsets and
of its own checkpoint, whatever crashed in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from catalog.runs import FusedRun, QueryRun
from secfilter.checkpoint import Checkpoints, replace_file
from secfilter.going_on import layout_of, owners_of, shape_of
from secfilter.kafka_options import EARLIEST, Offsets

_FILE, _VERSION = "seat.json", 1


@dataclass(frozen=True, slots=True)
class Seats:
    """The seats of all runs.

    `starting` gives the offsets of all partitions of topics (`Positions.starting`).
    """

    checkpoints: Checkpoints
    starting: Callable[[Sequence[str], Offsets], Offsets]

    def group_of(self, run: str) -> str | None:
        """The fused run that carries the run; None if it runs by itself."""
        return self._read(run)[0]

    def begins(self, run: str) -> Offsets:
        """From where its fused run carries the run."""
        return self._read(run)[1]

    def place(self, run: str, first: Offsets | None = None) -> Offsets:
        """Before which offsets all is delivered. `first` is where it begins if it never ran."""
        own = self.checkpoints.previous(run)
        alone = (first or {}) if own is None else own.committed()
        group = self.group_of(run)
        if group is None:
            return alone
        fused = self.checkpoints.previous(group)
        carried = {} if fused is None else fused.committed()
        return later(alone, later(carried, self.begins(run)))

    def leave(self, run: str) -> None:
        """Let the run go on by itself where it has come. Its fused run does not run now."""
        place = self.place(run)
        self.checkpoints.moved(run, self.starting(list(place), place))
        self._file(run).unlink(missing_ok=True)

    def take(self, run: FusedRun) -> FusedRun:
        """Give all members their seats, and all others none; nothing of the fused run runs now.

        The result begins where the member begins that has come least far. Each output of the others
        gets nothing from before its own place, so nothing comes twice.
        """
        seated = self._seated(run.name)
        for name in sorted(seated - {each.name for each in run.members}):
            self.leave(name)
        places = self._places(run)
        start = earliest(places.values())
        # In this order each step leaves all members where they are, should it be the last one.
        for name in sorted(seated & places.keys()):
            self._write(name, run.name, places[name])
        before = self.checkpoints.previous(run.name)
        if before is not None and before.committed() != start:
            self.checkpoints.moved(run.name, self.starting(list(start), start))
        for each in run.members:
            if each.name not in seated:
                self._begin(each, places[each.name])
                self._write(each.name, run.name, places[each.name])
        return _beginning(run, places)

    def seen(self, run: FusedRun) -> FusedRun:
        """What `take` would give if the run started now."""
        return _beginning(run, self._places(run))

    def _places(self, run: FusedRun) -> dict[str, Offsets]:
        return {each.name: self.place(each.name, each.starting_offsets) for each in run.members}

    def _begin(self, run: QueryRun, place: Offsets) -> None:
        """Make a checkpoint for a run that never ran, so that it can leave."""
        if self.checkpoints.previous(run.name) is None:
            owners, (layout, _) = owners_of(run), layout_of(run, None)
            start = self.starting(list(owners), place)
            self.checkpoints.renew(run.name, shape_of(run), start, owners, layout)

    def _seated(self, group: str) -> set[str]:
        found = (path.parent.name for path in self.checkpoints.root.glob(f"*/{_FILE}"))
        return {name for name in found if self.group_of(name) == group}

    def _read(self, run: str) -> tuple[str | None, Offsets]:
        """The fused run, and the offsets."""
        file = self._file(run)
        if not file.exists():
            return None, {}
        data = json.loads(file.read_text())
        if data["version"] != _VERSION:
            # To guess where it has come would lose results.
            raise ValueError(f"the seat of {run} has another version")
        return data["group"], data["begins"]

    def _write(self, run: str, group: str, begins: Offsets) -> None:
        data = {"version": _VERSION, "group": group, "begins": begins}
        replace_file(self._file(run), json.dumps(data))

    def _file(self, run: str) -> Path:
        return self.checkpoints.home(run) / _FILE


def later(one: Offsets, two: Offsets) -> Offsets:
    """The later offset of each partition that one of both has."""
    return {
        topic: {
            partition: max(each.get(topic, {}).get(partition, EARLIEST) for each in (one, two))
            for partition in {**one.get(topic, {}), **two.get(topic, {})}
        }
        for topic in {**one, **two}
    }


def earliest(all_: Iterable[Offsets]) -> Offsets:
    """The earliest offset of each partition. It is the first one if an offset is not known."""
    several = list(all_)
    topics = {topic for each in several for topic in each}
    return {
        topic: {
            partition: min(each.get(topic, {}).get(partition, EARLIEST) for each in several)
            for partition in sorted({p for each in several for p in each.get(topic, {})})
        }
        for topic in sorted(topics)
    }


def _beginning(run: FusedRun, places: Mapping[str, Offsets]) -> FusedRun:
    """The run whose outputs begin at the places of their members."""
    members = tuple(
        replace(
            each,
            outputs=tuple(
                replace(output, begins=later(output.begins, places[each.name]))
                for output in each.outputs
            ),
        )
        for each in run.members
    )
    outputs = tuple(output for each in members for output in each.outputs)
    return replace(
        run, members=members, outputs=outputs, starting_offsets=earliest(places.values())
    )
