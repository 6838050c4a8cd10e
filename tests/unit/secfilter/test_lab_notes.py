"""From where lab is read after a crash: nothing that is read again may be before that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from secfilter.checkpoint import Checkpoints
from secfilter.kafka_options import Offsets
from secfilter.lab_notes import Note, Notes, keep_notes, notes_of

LAB, IN = "lab.s", "in.a"
# A sender sends; ingest writes the next record to lab, commits, crashes, or commits too little (a
# batch that is done again ends where it likes); somebody asks for lab's ends, then for the others.
STEPS = st.lists(
    st.sampled_from(["send", "send", "write", "write", "commit", "crash", "lab", "sent"]),
    max_size=80,
)


@dataclass
class Ingest:
    """One sender's topic, which ends at `sent`; `lab` has the offsets of its records."""

    notes: Notes = field(default_factory=Notes)
    sent: int = 0
    read: int = 0
    committed: int = 0
    lab: list[int] = field(default_factory=list)
    asked: int | None = None

    def step(self, what: str) -> None:
        match what:
            case "send":
                self.sent += 1
            case "write" if self.read < self.sent:
                # What is in lab already is read, and left out.
                if self.read not in self.lab[self.read_from :]:
                    self.lab.append(self.read)
                self.read += 1
            case "commit":
                self.committed = self.read
                self.notes = self.notes.settled(at(self.committed))
            case "crash":
                self.read, self.asked = self.committed, None
            case "lab" if self.notes.pending is None:
                self.asked = len(self.lab)
            case "sent" if self.asked is not None:
                noted = Note({LAB: {"0": self.asked}}, {IN: {"0": self.sent}})
                self.notes, self.asked = replace(self.notes, pending=noted), None

    @property
    def read_from(self) -> int:
        return int(self.notes.lab_ends(at(self.committed)).get(LAB, {"0": 0})["0"])


def at(offset: int) -> Offsets:
    return {IN: {"0": offset}}


@given(STEPS)
def test_what_is_read_again_stands_behind_the_note(steps: list[str]) -> None:
    ingest = Ingest()
    for step in steps:
        ingest.step(step)
        assert all(offset < ingest.committed for offset in ingest.lab[: ingest.read_from])
    assert len(set(ingest.lab)) == len(ingest.lab), "no tuple twice"


@given(st.integers(1, 20))
def test_notes_follow_commits(commits: int) -> None:
    ingest = Ingest()
    for _ in range(commits):
        for step in ("send", "write", "lab", "sent", "commit"):
            ingest.step(step)
    assert ingest.read_from == commits


def test_a_batch_that_ends_earlier_when_it_is_done_again_makes_no_note_count() -> None:
    ingest = Ingest()
    for step in ("send", "send", "write", "write", "lab", "sent", "crash", "write", "commit"):
        ingest.step(step)
    assert (ingest.committed, ingest.lab, ingest.read_from) == (1, [0, 1], 0)
    for step in ("write", "commit"):
        ingest.step(step)
    assert (ingest.lab, ingest.read_from) == ([0, 1], 2)


def test_a_note_counts_without_topics_that_are_not_read_any_more() -> None:
    note = Note({LAB: {"0": 9}}, {IN: {"0": 5, "1": 2}, "in.b": {"0": 7}})
    assert note.counts({IN: {"0": 5, "1": 3}})
    assert not note.counts({IN: {"0": 5, "1": 3}, "in.b": {"0": 6}})
    for behind in ({"0": 4, "1": 3}, {"0": 5}, {"0": 5, "1": -2}):
        assert not note.counts({IN: behind})


def test_the_next_tuple_is_behind_what_is_empty() -> None:
    notes = Notes(None, None, {IN: {"0": 5, "1": 7}}, {IN: {"0": 8}})
    known = {IN: {"0": 5, "1": 7}, "in.b": {"0": 5}}
    assert notes.next_tuples(known) == {IN: {"0": 8, "1": 7}, "in.b": {"0": 5}}
    read_on = {IN: {"0": 6}}
    assert notes.next_tuples(read_on) == read_on
    pending = replace(notes, pending=Note({LAB: {"0": 3}}, {IN: {"0": 8}}))
    assert pending.lab_ends({IN: {"0": 5}}) == {LAB: {"0": 3}}
    assert pending.lab_ends(read_on) == {}


def test_notes_are_kept(tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path).renew("ingest-1", "shape", None)
    assert notes_of(checkpoint) == Notes(), "without notes lab is read as a whole"
    one, other = (Note({LAB: {"0": n}}, {IN: {"0": n}}) for n in (1, 2))
    for kept in (Notes(), Notes(one), Notes(one, other, {IN: {"0": 1}}, {IN: {"0": 2}})):
        keep_notes(checkpoint, kept)
        assert notes_of(checkpoint) == kept


def test_notes_of_another_version_are_none(tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path).renew("ingest-1", "shape", None)
    keep_notes(checkpoint, Notes(Note({LAB: {"0": 1}}, {})))
    file = checkpoint.folder / "lab_notes.json"
    file.write_text(file.read_text().replace('"version": 1', '"version": 2'))
    assert notes_of(checkpoint) == Notes()
