"""Where a query begins to deliver to a class that is new: at the tuples since its topic was made.

The topic is made in the call that gives a right. So what is sent when that call has returned comes,
also what is sent before an engine has seen the new class. A side run begins there
(`secfilter.beside`), and so does a main run that takes up a class which no side run has fed. What
other topics get once more has the same ids.

What a query has taken up is noted in its folder of checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from catalog.runs import FanOutClass, FusedRun, QueryRun, Run
from secfilter.backlog import in_microbatches
from secfilter.beside import fed_by, side_name
from secfilter.checkpoint import Checkpoint, Checkpoints, replace_file
from secfilter.kafka_options import Offsets
from secfilter.side_notes import SideNotes

_FILE, _VERSION = "taken.json", 1
LONGEST_AGO_MS = 300_000
"""A class that is older is fed from the ends on: it could take nothing before, or never ran."""


def moved_back(
    offsets: Offsets, classes: Iterable[FanOutClass], covered: Collection[str], now_ms: float
) -> Offsets:
    """The offsets, or those where a class begins that is new, if they are earlier.

    `covered` are the topics that something feeds, or has fed, from their beginnings on.
    """
    new = [
        each
        for each in classes
        if each.topic not in covered and each.made_ms >= now_ms - LONGEST_AGO_MS
    ]
    return {
        topic: {
            partition: min([offset, *_begins(new, topic, partition)])
            for partition, offset in partitions.items()
        }
        for topic, partitions in offsets.items()
    }


def _begins(classes: Iterable[FanOutClass], topic: str, partition: str) -> Iterable[int]:
    for each in classes:
        begin = each.begins.get(topic, {}).get(partition)
        if begin is not None:
            yield begin


def takes_up(run: Run) -> TypeGuard[QueryRun]:
    """Whether a run of this kind may go back to where a class begins: nothing is in its state."""
    alone = isinstance(run, QueryRun) and not isinstance(run, FusedRun)
    return alone and not in_microbatches(run)


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Notes of which topics the main run of a query has begun to feed.

    `starting` gives the offsets that there still are, as `Positions.starting`.
    """

    checkpoints: Checkpoints
    sides: SideNotes
    starting: Callable[[Sequence[str], Offsets], Offsets]

    def begin(self, run: QueryRun, checkpoint: Checkpoint, now_ms: float) -> Checkpoint:
        """Where a main run starts that goes on at the checkpoint, and feeds all its topics."""
        known = self._topics(run.name)
        if known is None:
            # From the first start on, it is known which topics are new.
            return checkpoint
        covered = known | self.sides.unfinished(side_name(run.name))
        return self._moved(run, checkpoint, covered, now_ms)

    def begin_side(self, run: QueryRun, ends: Callable[[], Offsets], now_ms: float) -> QueryRun:
        """A side run that starts: one that has begun goes on, or back to where a class begins."""
        noted = self.sides.unfinished(run.name)
        begun = self.checkpoints.previous(run.name)
        if noted and begun is not None:
            self._moved(run, begun, noted, now_ms)
            return run
        self.sides.finish(run.name)
        return replace(run, starting_offsets=moved_back(ends(), run.classes, (), now_ms))

    def note(self, run: QueryRun) -> None:
        """Note all topics of a main run, when its query has been started."""
        text = json.dumps({"version": _VERSION, "topics": sorted(fed_by(run))})
        replace_file(self.checkpoints.home(run.name) / _FILE, text)

    def _moved(
        self, run: QueryRun, checkpoint: Checkpoint, covered: Collection[str], now_ms: float
    ) -> Checkpoint:
        committed = checkpoint.committed()
        start = moved_back(committed, run.classes, covered, now_ms)
        if start == committed:
            return checkpoint
        return self.checkpoints.moved(run.name, self.starting(list(start), start))

    def _topics(self, run: str) -> frozenset[str] | None:
        """The topics, or None if nothing is noted that this version can read."""
        file = self.checkpoints.home(run) / _FILE
        if not file.exists():
            return None
        data = json.loads(file.read_text())
        return frozenset(data["topics"]) if data["version"] == _VERSION else None
