"""Notes beside an ingest run's checkpoint. They say from where to read lab topics after a crash.

After a crash ingest reads again what came behind its last commit, and must know what of it is
in lab already. A sender that has been quiet for long may have its newest tuple anywhere in a lab
partition. So while ingest runs, the ends of the lab topics are noted, and behind that the ends of
the senders' topics. A note counts once all that was in the senders' topics then is committed:
what is read again is behind the noted ends of lab, if it is in lab at all. Numbers of batches
would not do: a batch that is done again may end earlier than it did before the crash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from secfilter.checkpoint import Checkpoint, replace_file
from secfilter.kafka_options import Offsets

_FILE, _VERSION = "lab_notes.json", 1


@dataclass(frozen=True, slots=True)
class Note:
    """Ends of lab topics, and ends of senders' topics that were looked up after them."""

    lab: Offsets
    sent: Offsets

    def counts(self, next_tuples: Offsets) -> bool:
        """Whether nothing before these ends of lab is read again from `next_tuples` on.

        A topic that is not among them is not read any more.
        """
        return all(
            max(0, next_tuples[topic].get(partition, 0)) >= end
            for topic, ends in self.sent.items()
            if topic in next_tuples
            for partition, end in ends.items()
        )


@dataclass(frozen=True, slots=True)
class Notes:
    """The newest note that is known to count, and one that does not yet.

    `read` and `empty` belong together, both as {topic: {partition: offset}}: in a sender's topic
    there is no tuple from the offset in `read` up to the one in `empty`, only what Kafka writes of
    transactions, and what was aborted.
    """

    counting: Note | None = None
    pending: Note | None = None
    read: Offsets = field(default_factory=dict)
    empty: Offsets = field(default_factory=dict)

    def lab_ends(self, committed: Offsets) -> Offsets:
        """From where lab is read if ingest goes on at `committed`.

        A topic of which nothing is noted is read from its beginning.
        """
        newest = self.settled(committed).counting
        return {} if newest is None else newest.lab

    def settled(self, committed: Offsets) -> Notes:
        """The same, with the pending note in its place if it counts now."""
        if self.pending is None or not self.pending.counts(self.next_tuples(committed)):
            return self
        return Notes(self.pending, None, self.read, self.empty)

    def next_tuples(self, known: Offsets) -> dict[str, dict[str, int]]:
        """The offsets in `known`, moved to where the next tuple can be."""
        return {
            topic: {
                partition: self._next(topic, partition, offset)
                for partition, offset in partitions.items()
            }
            for topic, partitions in known.items()
        }

    def _next(self, topic: str, partition: str, offset: int) -> int:
        if self.read.get(topic, {}).get(partition) != offset:
            return offset
        return self.empty.get(topic, {}).get(partition, offset)


def begun(notes: Notes, committed: Offsets, ends: Offsets) -> Notes:
    """The notes of a side run that begins at `committed` with more senders (`secfilter.newcomers`).

    `ends` are the ends of its lab topics, where nothing of its new senders is yet. If no note of
    what it did before counts, there is none now either.
    """
    settled = notes.settled(committed)
    if committed and settled.counting is None:
        return replace(settled, pending=None)
    noted = settled.lab_ends(committed)
    return replace(settled, counting=Note({**ends, **noted}, {}), pending=None)


def joined(main: Notes, read: Offsets, side: Notes, beside: Offsets) -> Notes:
    """The notes of a run that takes over a side run: `main` at `read`, and `side` at `beside`.

    Both write lab topics, so each of these is read from the earlier of both ends. The notes of the
    side run name each lab topic that it writes.
    """
    own, other = main.settled(read), side.settled(beside)
    lab: dict[str, Mapping[str, int]] = {}
    if own.counting is not None and other.counting is not None:
        ends = other.counting.lab
        lab = {topic: _earlier(each, ends.get(topic)) for topic, each in own.counting.lab.items()}
    return Notes(Note(lab, {}), None, {**side.read, **main.read}, {**side.empty, **main.empty})


def _earlier(ends: Mapping[str, int], others: Mapping[str, int] | None) -> Mapping[str, int]:
    """The earlier end of each partition. A partition that one does not have is left out."""
    if others is None:
        return ends
    return {p: min(offset, others[p]) for p, offset in ends.items() if p in others}


def notes_of(checkpoint: Checkpoint) -> Notes:
    """The notes of a generation. They are empty if there are none or they have another version."""
    file = _file(checkpoint)
    if not file.exists():
        return Notes()
    data = json.loads(file.read_text())
    if data["version"] != _VERSION:
        return Notes()
    return Notes(_note(data["counting"]), _note(data["pending"]), data["read"], data["empty"])


def keep_notes(checkpoint: Checkpoint, notes: Notes) -> None:
    """Write the notes of a generation."""
    replace_file(_file(checkpoint), json.dumps({"version": _VERSION, **asdict(notes)}))


def _note(data: Mapping[str, Offsets] | None) -> Note | None:
    return None if data is None else Note(data["lab"], data["sent"])


def _file(checkpoint: Checkpoint) -> Path:
    return checkpoint.folder / _FILE
