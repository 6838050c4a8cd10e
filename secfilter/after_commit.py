"""Work beside a running ingest query: it keeps notes for a restart and finds drained topics."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from catalog.errors import PlatformError
from catalog.runs import IngestRun, Sender
from catalog.topics import lab_topic
from secfilter.checkpoint import Checkpoint
from secfilter.kafka_options import Offsets, written
from secfilter.lab_notes import Note, Notes, keep_notes, notes_of
from secfilter.positions import Positions

_EVERY_S = 2.0
_NO_COMMIT = -2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Drains:
    """The draining senders, and the call that reports a drained one.

    `still_read` says which of these senders ingest reads, or will read again.
    """

    draining: Callable[[], Collection[int]] = frozenset
    drained: Callable[[Collection[int]], object] = lambda _senders: None
    still_read: Callable[[Collection[int]], Collection[int]] = lambda senders: senders


@dataclass
class AfterCommit:
    """Looks after one ingest query; `positions` asks Kafka."""

    run: IngestRun
    checkpoint: Checkpoint
    positions: Positions
    drains: Drains
    _commit: int = _NO_COMMIT
    _committed: Offsets = field(default_factory=dict)
    _drained: frozenset[int] = frozenset()

    def keep_up(self, goes_on: Callable[[], bool]) -> None:
        """Look every two seconds, while the query runs."""
        while goes_on():
            try:
                self.look()
            except PlatformError as error:
                _log.warning("%s: notes could not be kept: %s", self.run.name, error.detail)
            except OSError as error:
                _log.warning("%s: notes could not be kept: %s", self.run.name, error.strerror)
            time.sleep(_EVERY_S)

    def look(self) -> None:
        """After a new commit, note the ends of lab topics and empty ranges.

        Report drained topics.
        """
        if self.checkpoint.last_commit() != self._commit:
            self._note()
        self._tell_drained()

    def _note(self) -> None:
        commit, committed = self.checkpoint.last_commit(), self.checkpoint.committed()
        known = self._with_empty(notes_of(self.checkpoint), committed)
        notes = known.settled(committed)
        own = {sender.topic for sender in self._senders()}
        # Of a topic that is left out now, nobody knows how much of it is in lab.
        if notes.pending is None and committed.keys() <= own:
            lab = self._ends({lab_topic(stream.relation.name) for stream in self.run.streams})
            # In this order: whatever is in lab by then is before these ends.
            notes = replace(notes, pending=Note(lab, self._ends(own)))
        keep_notes(self.checkpoint, notes)
        self._commit, self._committed = commit, committed

    def _ends(self, topics: Collection[str]) -> Offsets:
        return {topic: written(ends) for topic, ends in self.positions.ends(topics).items()}

    def _with_empty(self, notes: Notes, committed: Offsets) -> Notes:
        """Note the ranges of unread topics that hold only ends of transactions."""
        still = {
            sender.topic: read
            for sender in self._senders()
            if (read := committed.get(sender.topic)) and read == self._committed.get(sender.topic)
        }
        ends = self.positions.ends(still)
        empty = {topic: self._empty_to(topic, read, ends[topic]) for topic, read in still.items()}
        # Keep nothing about topics that are gone.
        before = {topic: read for topic, read in notes.read.items() if topic in committed}
        kept = {topic: notes.empty[topic] for topic in before if topic in notes.empty}
        return replace(notes, read={**before, **still}, empty={**kept, **empty})

    def _empty_to(
        self, topic: str, read: Mapping[str, int], ends: Mapping[int, int]
    ) -> dict[str, int]:
        behind = {
            int(partition): offset
            for partition, offset in read.items()
            if 0 <= offset < ends.get(int(partition), 0)
        }
        return written(self.positions.next_tuples(topic, behind)) if behind else {}

    def _tell_drained(self) -> None:
        """Report senders that are drained at two looks in a row. One look may miss a new record."""
        draining = set(self.drains.draining())
        own = [sender for sender in self._senders() if sender.id in draining]
        if not own:
            return
        committed = self.checkpoint.committed()
        now = frozenset(s.id for s in own if self._is_drained(s.topic, committed))
        if sure := now & self._drained:
            _log.info("%s: senders %s are drained", self.run.name, sorted(sure))
            self.drains.drained(sure)
        self._drained = now

    def _is_drained(self, topic: str, committed: Offsets) -> bool:
        """Whether all committed records of the topic are read, and no transaction is open."""
        read = {int(p): max(0, offset) for p, offset in committed.get(topic, {}).items()}
        ends = self.positions.raw_ends(topic)
        if read.keys() != ends.keys():
            return False
        behind = {p: offset for p, offset in read.items() if offset < ends[p]}
        return not behind or self.positions.next_tuples(topic, behind) == {
            p: ends[p] for p in behind
        }

    def _senders(self) -> list[Sender]:
        return [sender for stream in self.run.streams for sender in stream.senders]
