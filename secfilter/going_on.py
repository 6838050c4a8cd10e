"""Where a run goes on: at its checkpoint, or at a new one that takes over what is known.

An ingest run takes over its side run (`secfilter.newcomers`): one step writes a checkpoint that
holds the offsets of both. A crash before that step leaves both as they were, and a crash after it
leaves a side run that holds nothing of its own: a topic that the main run holds is the main run's.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from catalog.label_layout import LabelLayout
from catalog.plan import is_stateful, sources
from catalog.plan_json import encode
from catalog.reach import reach
from catalog.runs import IngestRun, Run
from catalog.topics import lab_topic
from secfilter.after_commit import Drains
from secfilter.beside import is_side, side_name
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.kafka_options import Offsets, written
from secfilter.lab_notes import Notes, begun, joined, keep_notes, notes_of
from secfilter.positions import Positions

# The shape of a side run's checkpoint that holds nothing.
_EMPTY = ""
# The form of the columns in a query's state. If it changes, queries begin with empty state.
_STATE_FORM = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """How far a run had come: its offsets, with the owner of each topic, and notes about lab."""

    committed: Offsets = field(default_factory=dict)
    owners: Mapping[str, int] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Finds the checkpoint of a run that starts.

    `positions` asks Kafka. `repeats` says whether a tuple may be in lab twice.
    """

    checkpoints: Checkpoints
    positions: Positions
    drains: Drains
    repeats: bool = False

    def checkpoint(self, run: Run) -> tuple[Checkpoint, int]:
        """Where the run goes on, and how many records it has lost. Raises Unavailable.

        Older generations are deleted. So the caller holds the run, and nothing of it runs now.
        """
        found = self._found(run)
        self.checkpoints.drop_older(run.name)
        return found

    def _found(self, run: Run) -> tuple[Checkpoint, int]:
        """Where the run goes on, and how many records it has lost.

        New categories get free bits of the layout of its labels, which is kept before a query uses
        it. If they do not fit, the run begins a new checkpoint at the same offsets, with empty
        state.

        What retention took before it was read fails Spark's checkpoint for ever, so the run begins
        a new one at what is left. No side run of an ingest run runs now. Raises Unavailable.
        """
        shape = shape_of(run, repeats=self.repeats)
        current = self.checkpoints.current(run.name, shape)
        layout, anew = layout_of(run, current)
        if current is not None:
            current.clear_cut_off()
            current.plan_due_batch()
            if anew:
                _log.warning("%s: labels need more words than its state has", run.name)
                current = None
            elif layout is not None:
                current.keep_layout(layout)
        side = self._side(run)
        before = self._before(run, side)
        known = _known(run, before)
        passed = self.positions.lost(known)
        if current is not None and not passed and side is None:
            return current, 0
        # What retention took of transactions' ends, and of what was aborted, is no loss.
        tuples = known if before is None else before.notes.next_tuples(known)
        lost = self.positions.lost(tuples) if passed else 0
        if lost:
            _log.warning("%s: %d lost to retention before they were read", run.name, lost)
        renewed = self._renewed(run, known, before, layout)
        return replace(renewed, anew=anew and _keeps_state(run)), lost

    def _renewed(
        self, run: Run, known: Offsets, before: _Known | None, layout: LabelLayout | None
    ) -> Checkpoint:
        """A new checkpoint that begins there, and holds all that its side run held."""
        owners = owners_of(run)
        start = self.positions.starting(list(owners), known)
        aside, held = self._aside(run, before)
        notes = self._notes(run, before)
        start, owners = {**aside, **start}, {**held, **owners}
        shape = shape_of(run, repeats=self.repeats)
        renewed = self.checkpoints.renew(run.name, shape, start, owners, layout)
        # A crash before this costs time only: without notes, lab is read from its beginning.
        if notes is not None:
            keep_notes(renewed, notes)
        if self._side(run) is not None:
            # Another generation, and not none: a look beside the last one may still write there.
            self.checkpoints.renew(side_name(run.name), _EMPTY, {}, {})
        return renewed

    def _side(self, run: Run) -> Checkpoint | None:
        """What a side run has left for this ingest run to take over."""
        if not isinstance(run, IngestRun) or is_side(run.name):
            return None
        newest = self.checkpoints.previous(side_name(run.name))
        return newest if newest is not None and newest.owners else None

    def _before(self, run: Run, side: Checkpoint | None) -> _Known | None:
        """What is known of the run before, and of its side run; None if it has never begun."""
        main = self.checkpoints.previous(run.name)
        if side is None:
            return None if main is None else _known_of(main)
        own, beside = _Known() if main is None else _known_of(main), _known_of(side)
        return _Known(
            {**beside.committed, **own.committed},
            {**beside.owners, **own.owners},
            joined(own.notes, own.committed, beside.notes, beside.committed),
        )

    def _notes(self, run: Run, before: _Known | None) -> Notes | None:
        """The notes with which a new checkpoint begins."""
        if not isinstance(run, IngestRun):
            return None
        if not is_side(run.name):
            return None if before is None else before.notes
        # Its new senders have nothing in lab yet, so lab need not be read for them.
        labs = {lab_topic(stream.relation.name) for stream in run.streams}
        ends = {topic: written(each) for topic, each in self.positions.ends(labs).items()}
        if before is None:
            return begun(Notes(), {}, ends)
        return begun(before.notes, before.committed, ends)

    def _aside(self, run: Run, before: _Known | None) -> tuple[Offsets, dict[str, int]]:
        """How far ingest had come in topics that it does not read now, with their owners.

        A stream that was left out for a while goes on there.
        """
        if before is None or not isinstance(run, IngestRun):
            return {}, {}
        held = {t: owner for t, owner in before.owners.items() if t not in owners_of(run)}
        still = set(self.drains.still_read(held.values())) if held else set()
        held = {topic: owner for topic, owner in held.items() if owner in still}
        return {t: o for t, o in before.committed.items() if t in held}, held


def owners_of(run: Run) -> dict[str, int]:
    """The topics that the run reads, each with the id of the sender or relation that it is of."""
    if isinstance(run, IngestRun):
        return {sender.topic: sender.id for s in run.streams for sender in s.senders}
    return {relation.topic: relation.object_id for relation in sources(run.plan)}


def layout_of(run: Run, current: Checkpoint | None) -> tuple[LabelLayout | None, bool]:
    """The layout of a query's labels, and whether the state that there is has no room for it."""
    if isinstance(run, IngestRun):
        return None, False
    reached = reach(run.plan, run.reach_of) | run.floor
    grown = None if current is None else current.layout().grown(reached)
    return grown or LabelLayout.of(reached), grown is None and current is not None


def _keeps_state(run: Run) -> bool:
    return not isinstance(run, IngestRun) and is_stateful(run.plan)


def shape_of(run: Run, *, repeats: bool = False) -> str:
    """What a checkpoint depends on: of an ingest run its topics, of a query its plan.

    The layout of a query's labels is kept beside its state, and grows. The fan-out is behind
    all state, so a query goes on from its checkpoint with other classes. A plan that keeps state
    also keeps the ids of tuples if a tuple may be in lab twice (`repeats`).
    """
    depends: object
    if isinstance(run, IngestRun):
        depends = sorted(
            (sender.topic, sender.id, stream.partitions)
            for stream in run.streams
            for sender in stream.senders
        )
    else:
        ids = ["ids of tuples"] if repeats and is_stateful(run.plan) else []
        depends = [encode(run.plan), _STATE_FORM, *ids]
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _known_of(checkpoint: Checkpoint) -> _Known:
    return _Known(checkpoint.committed(), checkpoint.owners, notes_of(checkpoint))


def _known(run: Run, before: _Known | None) -> Offsets:
    """How far the run had come with another shape, in the topics that it reads now.

    A topic that another object had under that name has begun anew.
    """
    known = before.committed if before else _first_offsets(run)
    owners, held = owners_of(run), before.owners if before else {}
    return {t: known[t] for t in owners if t in known and held.get(t, owners[t]) == owners[t]}


def _first_offsets(run: Run) -> Offsets:
    return {} if isinstance(run, IngestRun) else run.starting_offsets
