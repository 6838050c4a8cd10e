"""Where a query begins to deliver to a class that is new, and what it notes of that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from catalog.clearance import Clearance
from catalog.runs import FanOutClass, QueryRun
from secfilter.beside import side_name, side_run
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.class_beginnings import LONGEST_AGO_MS, TakenUp, moved_back, takes_up
from secfilter.going_on import layout_of, owners_of, shape_of
from secfilter.kafka_options import Offsets
from secfilter.side_notes import SideNotes
from tests.unit.secfilter.side_world import run_of

NOW_MS = 10_000_000.0
LAB = "lab.s"
AT: Offsets = {LAB: {"0": 7, "1": 7}}


def made(topic: str, offset: int, ago_ms: float = 0, partition: str = "0") -> FanOutClass:
    """A class that was made so long ago, when the partition ended at the offset."""
    begins = {LAB: {partition: offset}}
    at_ms = int(NOW_MS - ago_ms)
    return FanOutClass(topic, Clearance.of(0), begins=begins, made_ms=at_ms)


@pytest.mark.parametrize(
    ("classes", "first"),
    [
        ((), 7),
        ((made("a", 9),), 7),
        ((made("a", 5), made("b", 3)), 3),
        ((made("a", 5, LONGEST_AGO_MS),), 5),
        ((made("a", 5, LONGEST_AGO_MS + 1),), 7),
        ((made("seen", 5),), 7),
        ((made("a", 5, partition="2"),), 7),
    ],
)
def test_offsets_are_moved_back_to_where_a_new_class_was_made(
    classes: tuple[FanOutClass, ...], first: int
) -> None:
    assert moved_back(AT, classes, {"seen"}, NOW_MS) == {LAB: {"0": first, "1": 7}}


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path)


@pytest.fixture
def taken(checkpoints: Checkpoints) -> TakenUp:
    """Retention has taken all before offset 2."""

    def starting(_topics: object, known: Offsets) -> Offsets:
        return {t: {p: max(2, o) for p, o in of.items()} for t, of in known.items()}

    return TakenUp(checkpoints, SideNotes(checkpoints), starting)


def begun(checkpoints: Checkpoints, run: QueryRun) -> Checkpoint:
    """The run has come to `AT`."""
    layout, _ = layout_of(run, None)
    return checkpoints.renew(run.name, shape_of(run), AT, owners_of(run), layout)


def with_classes(*classes: FanOutClass) -> QueryRun:
    run = run_of()
    return replace(run, outputs=(replace(run.outputs[0], classes=classes),))


def test_a_main_run_goes_back_for_a_class_that_nothing_has_fed(
    checkpoints: Checkpoints, taken: TakenUp
) -> None:
    before = with_classes(made("a", 1))
    checkpoint = begun(checkpoints, before)
    assert taken.begin(before, checkpoint, NOW_MS) == checkpoint, "nothing was noted yet"
    taken.note(before)
    assert taken.begin(before, checkpoint, NOW_MS) == checkpoint
    more = with_classes(made("a", 1), made("b", 4), made("c", 0, partition="1"))
    moved = taken.begin(more, checkpoint, NOW_MS)
    assert moved.committed() == {LAB: {"0": 4, "1": 2}}, "and what retention took is not asked for"
    newest = checkpoints.current(more.name, shape_of(more))
    assert newest is not None and newest.committed() == moved.committed()
    assert newest.owners == checkpoint.owners


def test_what_a_side_run_feeds_is_no_reason_to_go_back(
    checkpoints: Checkpoints, taken: TakenUp
) -> None:
    before = with_classes(made("a", 1))
    checkpoint = begun(checkpoints, before)
    taken.note(before)
    side = side_run(with_classes(made("b", 4)), {"b"})
    assert side is not None
    begun(checkpoints, side)
    taken.sides.note(side_name(before.name), {"b"})
    assert taken.begin(with_classes(made("b", 4)), checkpoint, NOW_MS) == checkpoint


def test_a_side_run_begins_or_goes_back(checkpoints: Checkpoints, taken: TakenUp) -> None:
    side = side_run(with_classes(made("b", 4)), {"b"})
    assert side is not None
    first = taken.begin_side(side, lambda: AT, NOW_MS)
    assert first.starting_offsets == {LAB: {"0": 4, "1": 7}}
    begun(checkpoints, side)
    taken.sides.note(side.name, {"b"})
    assert taken.begin_side(side, dict, NOW_MS) == side
    assert taken.sides.reached(side.name) == AT, "it goes on"
    both = side_run(with_classes(made("b", 4), made("c", 6)), {"b", "c"})
    assert both is not None
    assert taken.begin_side(both, dict, NOW_MS) == both
    assert taken.sides.reached(side.name) == {LAB: {"0": 6, "1": 7}}


def test_notes_of_another_version_are_none(checkpoints: Checkpoints, taken: TakenUp) -> None:
    before = with_classes(made("a", 1))
    checkpoint = begun(checkpoints, before)
    taken.note(before)
    (file,) = checkpoints.home(before.name).glob("taken.json")
    file.write_text(file.read_text().replace('"version": 1', '"version": 99'))
    more = with_classes(made("b", 4))
    assert taken.begin(more, checkpoint, NOW_MS) == checkpoint


def test_a_run_of_micro_batches_does_not_go_back() -> None:
    run = with_classes(made("a", 1))
    assert takes_up(run)
    assert not takes_up(replace(run, backfill=True))
