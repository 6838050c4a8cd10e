"""Notes beside an ingest run's checkpoint: from where lab topics are read after a crash.

After a crash ingest reads again what came behind its last commit, and must know what of it stands
in lab already. A sender that has been quiet for long may have its newest tuple anywhere in a lab
partition. So while ingest runs, the ends of the lab topics are noted again and again: what a batch
writes that is not committed stands behind the newest note that was taken before that batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from secfilter.checkpoint import Checkpoint, replace_file
from secfilter.kafka_options import Offsets

_FILE, _VERSION = "lab_notes.json", 1


@dataclass(frozen=True, slots=True)
class Notes:
    """What is noted, as {topic: {partition: offset}} each.

    `ends` are those of lab topics by the number of the first batch whose commit makes them count.
    `read` and `empty` belong together: in a sender's topic there is no tuple from the offset in
    `read` up to the one in `empty`, only what Kafka writes of transactions, and what was aborted.
    """

    ends: Mapping[int, Offsets] = field(default_factory=dict)
    read: Offsets = field(default_factory=dict)
    empty: Offsets = field(default_factory=dict)

    def ends_at(self, commit: int) -> Offsets:
        """Behind these ends stands all that was written behind that commit (-1 before the first).

        No topic of it is to be read from elsewhere than its beginning where nothing is noted.
        """
        counting = [number for number in self.ends if number <= commit]
        return self.ends[max(counting)] if counting else {}

    def with_ends(self, ends: Offsets, commit: int) -> Notes:
        """Add ends that were asked for before `commit` was looked up as the newest commit.

        The batch behind that commit may have written before them. So they count once it is
        committed. Topics that are not among them keep their ends: nothing is written there.
        """
        newest = self.ends[max(self.ends)] if self.ends else {}
        counting = max((number for number in self.ends if number <= commit), default=-1)
        kept = {number: each for number, each in self.ends.items() if number >= counting}
        return Notes({**kept, commit + 1: {**newest, **ends}}, self.read, self.empty)

    def behind_empty(self, known: Offsets) -> dict[str, dict[str, int]]:
        """The offsets in `known`, moved to where the next tuple can be."""
        return {
            topic: {
                partition: self._behind(topic, partition, offset)
                for partition, offset in partitions.items()
            }
            for topic, partitions in known.items()
        }

    def _behind(self, topic: str, partition: str, offset: int) -> int:
        if self.read.get(topic, {}).get(partition) != offset:
            return offset
        return self.empty.get(topic, {}).get(partition, offset)


def notes_of(checkpoint: Checkpoint) -> Notes:
    """The notes of a generation; without any, or of another version, lab is read as a whole."""
    file = _file(checkpoint)
    if not file.exists():
        return Notes()
    data = json.loads(file.read_text())
    if data["version"] != _VERSION:
        return Notes()
    ends = {int(number): each for number, each in data["ends"].items()}
    return Notes(ends, data["read"], data["empty"])


def keep_notes(checkpoint: Checkpoint, notes: Notes) -> None:
    """Write the notes of a generation."""
    data = {"version": _VERSION, "ends": notes.ends, "read": notes.read, "empty": notes.empty}
    replace_file(_file(checkpoint), json.dumps(data))


def carry_over(before: Checkpoint, to: Checkpoint) -> None:
    """Let a new generation begin with what counts in the one before."""
    notes = notes_of(before)
    ends = notes.ends_at(before.last_commit())
    keep_notes(to, Notes({-1: ends}, notes.read, notes.empty))


def _file(checkpoint: Checkpoint) -> Path:
    return checkpoint.folder / _FILE
