"""From where lab is read after a crash: no tuple behind the last commit may stand before that."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from secfilter.checkpoint import Checkpoints
from secfilter.lab_notes import Notes, carry_over, keep_notes, notes_of

LAB = "lab.s"
# What happens, in any order: batches write and commit, and somebody asks for ends and notes them.
STEPS = st.lists(st.sampled_from(["write", "commit", "ask", "note"]), max_size=60)


@dataclass
class Ingest:
    """Writes a lab partition; `last` is the newest commit, `ends_of` where each batch ended."""

    notes: Notes = field(default_factory=lambda: Notes({-1: {LAB: {"0": 0}}}))
    end: int = 0
    last: int = -1
    committed_end: int = 0
    asked: int | None = None

    def step(self, what: str) -> None:
        match what:
            case "write":
                self.end += 1
            case "commit":
                self.last, self.committed_end = self.last + 1, self.end
            case "ask":
                self.asked = self.end
            case "note" if self.asked is not None:
                self.notes = self.notes.with_ends({LAB: {"0": self.asked}}, self.last)
                self.asked = None

    @property
    def read_from(self) -> int:
        return int(self.notes.ends_at(self.last)[LAB]["0"])


@given(STEPS)
def test_what_is_not_committed_stands_behind_the_note(steps: list[str]) -> None:
    ingest = Ingest()
    for step in steps:
        ingest.step(step)
        assert ingest.read_from <= ingest.committed_end


@given(st.integers(1, 20))
def test_notes_follow_commits_and_do_not_pile_up(commits: int) -> None:
    ingest = Ingest()
    for _ in range(commits):
        for step in ("write", "ask", "note", "commit"):
            ingest.step(step)
    assert ingest.read_from == commits
    assert len(ingest.notes.ends) <= 2


def test_a_topic_that_is_not_asked_for_keeps_its_note() -> None:
    first = Notes({-1: {LAB: {"0": 3}}})
    later = first.with_ends({"lab.t": {"0": 9}}, 0)
    assert later.ends_at(0) == {LAB: {"0": 3}}
    assert later.ends_at(1) == {LAB: {"0": 3}, "lab.t": {"0": 9}}


def test_the_next_tuple_is_behind_what_is_empty() -> None:
    notes = Notes({}, {"in.a": {"0": 5, "1": 7}}, {"in.a": {"0": 8}})
    known = {"in.a": {"0": 5, "1": 7}, "in.b": {"0": 5}}
    assert notes.behind_empty(known) == {"in.a": {"0": 8, "1": 7}, "in.b": {"0": 5}}
    read_on = {"in.a": {"0": 6}}
    assert notes.behind_empty(read_on) == read_on


def test_notes_are_kept_and_the_next_generation_begins_with_those_that_count(
    tmp_path: Path,
) -> None:
    checkpoints = Checkpoints(tmp_path)
    old = checkpoints.renew("ingest-1", "shape", None)
    assert notes_of(old) == Notes(), "without notes lab is read as a whole"
    kept = Notes({-1: {LAB: {"0": 1}}, 4: {LAB: {"0": 9}}}, {"in.a": {"0": 1}}, {"in.a": {"0": 2}})
    keep_notes(old, kept)
    assert notes_of(old) == kept
    new = checkpoints.renew("ingest-1", "other", None)
    carry_over(old, new)
    assert notes_of(new) == Notes({-1: {LAB: {"0": 1}}}, kept.read, kept.empty)


def test_notes_of_another_version_are_none(tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path).renew("ingest-1", "shape", None)
    keep_notes(checkpoint, Notes({-1: {LAB: {"0": 1}}}))
    file = checkpoint.folder / "lab_notes.json"
    file.write_text(file.read_text().replace('"version": 1', '"version": 2'))
    assert notes_of(checkpoint) == Notes()
