"""What is kept of a side run outlives a crash, and nothing of it outlives its work."""

from __future__ import annotations

from pathlib import Path

from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.kafka_options import Offsets
from secfilter.side_notes import SideNotes

_NAME = "query-9-side"
_START: Offsets = {"lab.a": {"0": 5}}


def begun(folder: Path) -> Checkpoint:
    made = Checkpoints(folder).renew(_NAME, "shape", _START)
    SideNotes(Checkpoints(folder)).note(_NAME, ["out.one"])
    return made


def test_nothing_is_kept_of_what_has_not_begun(tmp_path: Path) -> None:
    notes = SideNotes(Checkpoints(tmp_path))
    assert notes.unfinished(_NAME) == frozenset() and notes.reached(_NAME) == {}
    notes.finish(_NAME)
    assert list(tmp_path.iterdir()) == [], "who looks makes no folders"


def test_another_process_goes_on_with_all_classes(tmp_path: Path) -> None:
    begun(tmp_path)
    SideNotes(Checkpoints(tmp_path)).note(_NAME, ["out.two"])
    again = SideNotes(Checkpoints(tmp_path))
    assert again.unfinished(_NAME) == {"out.one", "out.two"}
    assert again.reached(_NAME) == _START


def test_it_has_reached_what_is_committed(tmp_path: Path) -> None:
    made = begun(tmp_path)
    for log, text in (("offsets", 'v1\n{}\n{"lab.a":{"0":8}}'), ("commits", "v1\n{}")):
        (made.spark / log).mkdir(parents=True)
        (made.spark / log / "0").write_text(text)
    (made.spark / "offsets" / "1").write_text('v1\n{}\n{"lab.a":{"0":9}}')
    assert SideNotes(Checkpoints(tmp_path)).reached(_NAME) == {"lab.a": {"0": 8}}


def test_the_next_one_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    begun(tmp_path)
    lock = Checkpoints(tmp_path).lock_file(_NAME)
    lock.touch()
    notes = SideNotes(Checkpoints(tmp_path))
    notes.finish(_NAME)
    assert notes.unfinished(_NAME) == frozenset() and notes.reached(_NAME) == {}
    assert Checkpoints(tmp_path).previous(_NAME) is None
    assert [path.name for path in lock.parent.iterdir()] == [lock.name], "who holds it goes on"
