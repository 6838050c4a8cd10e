"""Notes beside an ingest run's checkpoint. They say from where to read lab topics after a crash.

After a crash, ingest reads the records after its last commit again. It must know which of them are
in lab already. The newest tuple of a quiet sender may be anywhere in a lab partition. So while
ingest runs, it notes the ends of the lab topics again and again. A batch that is not committed has
written only after the newest note that was taken before that batch.
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
    """The notes, each as {topic: {partition: offset}}.

    `ends` has ends of lab topics, by the number of the first batch whose commit makes them count.
    `read` and `empty` belong together: in a sender's topic there is no tuple from the offset in
    `read` up to the one in `empty`, only Kafka's own transaction records and aborted records.
    """

    ends: Mapping[int, Offsets] = field(default_factory=dict)
    read: Offsets = field(default_factory=dict)
    empty: Offsets = field(default_factory=dict)

    def ends_at(self, commit: int) -> Offsets:
        """The ends after which everything is that was written after this commit (-1: none yet).

        A topic without a note must be read from its beginning.
        """
        counting = [number for number in self.ends if number <= commit]
        return self.ends[max(counting)] if counting else {}

    def with_ends(self, ends: Offsets, commit: int) -> Notes:
        """Add ends that were read before `commit` was looked up as the newest commit.

        The batch after that commit may have written before these ends. So they count only after
        that batch is committed. Other topics keep their ends, because nothing is written there.
        """
        newest = self.ends[max(self.ends)] if self.ends else {}
        counting = max((number for number in self.ends if number <= commit), default=-1)
        kept = {number: each for number, each in self.ends.items() if number >= counting}
        return Notes({**kept, commit + 1: {**newest, **ends}}, self.read, self.empty)

    def behind_empty(self, known: Offsets) -> dict[str, dict[str, int]]:
        """The offsets in `known`, moved over empty ranges to where the next tuple can be."""
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
    """The notes of a generation. They are empty if there are none or they have another version."""
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
    """Copy the notes that count from the old generation to the new one."""
    notes = notes_of(before)
    ends = notes.ends_at(before.last_commit())
    keep_notes(to, Notes({-1: ends}, notes.read, notes.empty))


def _file(checkpoint: Checkpoint) -> Path:
    return checkpoint.folder / _FILE
