"""Where a run goes on that joins others or leaves them, also if it crashes in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from catalog.label_layout import LabelLayout
from catalog.runs import FusedRun, QueryRun, fused
from secfilter import checkpoint, seats
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.going_on import owners_of, shape_of
from secfilter.kafka_options import EARLIEST, Offsets
from secfilter.seats import Seats, earliest, later
from tests.unit.secfilter.fusion_world import LAB, query

ONE, TWO, THREE = (query(number) for number in (1, 2, 3))
GROUP = "fused-query-1-a-1"
MOST_STEPS = 40


def at(first: int, second: int) -> Offsets:
    return {LAB: {"0": first, "1": second}}


def starting(topics: Sequence[str], known: Offsets) -> Offsets:
    return {topic: dict(known.get(topic, {})) for topic in topics}


def commit(made: Checkpoint, place: Offsets) -> None:
    number = made.last_commit() + 1
    for log, text in (("offsets", f"v1\n{{}}\n{json.dumps(place)}"), ("commits", "v1\n{}")):
        (made.spark / log).mkdir(parents=True, exist_ok=True)
        (made.spark / log / str(number)).write_text(text)


class Kept:
    """What the engines keep, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.checkpoints = Checkpoints(folder)
        self.seats = Seats(self.checkpoints, starting)

    def ran(self, run: QueryRun, place: Offsets) -> None:
        """The run has run and has come there."""
        current = self.checkpoints.current(run.name, shape_of(run))
        if current is None:
            layout = LabelLayout.of(run.sources)
            start = starting(list(owners_of(run)), run.starting_offsets)
            owners = owners_of(run)
            current = self.checkpoints.renew(run.name, shape_of(run), start, owners, layout)
        commit(current, place)

    def start(self, run: FusedRun) -> Offsets:
        """Start the fused run, as an engine does. Returns where it begins."""
        taken = self.seats.take(run)
        if self.checkpoints.current(run.name, shape_of(run)) is None:
            layout, owners = LabelLayout.of(run.sources), owners_of(run)
            self.checkpoints.renew(run.name, shape_of(run), taken.starting_offsets, owners, layout)
        current = self.checkpoints.previous(run.name)
        assert current is not None
        return current.committed()

    def places(self) -> list[Offsets]:
        return [self.seats.place(each.name) for each in (ONE, TWO, THREE)]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_a_group_begins_where_the_first_of_its_members_is(kept: Kept) -> None:
    kept.ran(ONE, at(5, 2))
    kept.ran(TWO, at(3, 4))
    taken = kept.seats.take(fused(GROUP, [ONE, TWO]))
    assert taken.starting_offsets == at(3, 2)
    assert [each.begins for each in taken.outputs] == [at(5, 2), at(3, 4)]
    assert [each.outputs[0].begins for each in taken.members] == [at(5, 2), at(3, 4)]


def test_an_output_never_begins_before_its_query_was_added(kept: Kept) -> None:
    later_one = query(1, begins=at(9, 9))
    kept.ran(later_one, at(5, 2))
    taken = kept.seats.take(fused(GROUP, [later_one]))
    assert taken.starting_offsets == at(5, 2) and taken.outputs[0].begins == at(9, 9)


def test_a_member_that_leaves_goes_on_where_the_group_is(kept: Kept) -> None:
    kept.ran(ONE, at(5, 2))
    kept.ran(TWO, at(3, 4))
    run = fused(GROUP, [ONE, TWO])
    kept.start(run)
    assert (kept.seats.group_of("query-1"), kept.seats.begins("query-1")) == (GROUP, at(5, 2))
    kept.ran(run, at(8, 3))
    kept.seats.leave("query-1")
    assert kept.seats.group_of("query-1") is None and kept.seats.begins("query-1") == {}
    own = kept.checkpoints.current("query-1", shape_of(ONE))
    assert own is not None and own.committed() == at(8, 3)
    assert kept.seats.place("query-2") == at(8, 4), "it was there before it joined"


def test_a_member_that_goes_to_another_engine_is_where_it_was(kept: Kept) -> None:
    kept.ran(ONE, at(5, 2))
    kept.ran(TWO, at(3, 4))
    run = fused(GROUP, [ONE, TWO])
    kept.start(run)
    kept.ran(run, at(8, 9))
    assert kept.start(fused(GROUP, [TWO])) == at(8, 9), "the group goes on at its checkpoint"
    assert kept.seats.group_of("query-1") is None
    assert kept.seats.place("query-1") == at(8, 9)
    kept.ran(fused(GROUP, [TWO]), at(20, 20))
    assert kept.seats.place("query-1") == at(8, 9), "what the group did later is not its own"


def test_a_newcomer_that_is_behind_takes_no_one_back(kept: Kept) -> None:
    kept.ran(ONE, at(5, 5))
    kept.ran(TWO, at(5, 5))
    kept.ran(THREE, at(2, 9))
    first = fused(GROUP, [ONE, TWO])
    kept.start(first)
    kept.ran(first, at(7, 7))
    run = fused(GROUP, [ONE, TWO, THREE])
    assert kept.seats.seen(run) == kept.seats.seen(run), "to look changes nothing"
    taken = kept.seats.take(run)
    assert taken.starting_offsets == at(2, 7)
    assert [each.begins for each in taken.outputs] == [at(7, 7), at(7, 7), at(2, 9)]
    group = kept.checkpoints.previous(GROUP)
    assert group is not None and group.committed() == at(2, 7)


def test_a_run_that_went_on_by_itself_is_no_further_back(kept: Kept) -> None:
    kept.ran(ONE, at(5, 5))
    kept.ran(TWO, at(5, 5))
    kept.start(fused(GROUP, [ONE, TWO]))
    kept.ran(ONE, at(30, 30))
    assert kept.seats.place("query-1") == at(30, 30), "the group never ran"


def test_a_seat_of_another_version_is_no_guess(kept: Kept) -> None:
    kept.ran(ONE, at(5, 2))
    (kept.checkpoints.home("query-1") / "seat.json").write_text('{"version": 2}')
    with pytest.raises(ValueError, match="another version"):
        kept.seats.place("query-1")


def _crashing(after: int) -> Callable[..., None]:
    """Replaces files, and ends the process before the next one."""
    real, left = checkpoint.replace_file, [after]

    def replace_file(path: Path, text: str) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        real(path, text)

    return replace_file


Step = Callable[[Kept], Any]
_JOIN: Step = lambda kept: kept.start(fused(GROUP, [ONE, TWO, THREE]))  # noqa: E731
_LEAVE: Step = lambda kept: kept.start(fused(GROUP, [ONE]))  # noqa: E731
_ALONE: Step = lambda kept: kept.seats.leave("query-2")  # noqa: E731
_OTHER: Step = lambda kept: kept.start(fused("fused-query-2-a-1", [THREE]))  # noqa: E731


@pytest.mark.parametrize("step", [_JOIN, _LEAVE, _ALONE, _OTHER])
def test_a_crash_leaves_all_where_they_are(
    step: Step, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it happens, and again when the same is tried once more."""
    done = False
    for after in range(MOST_STEPS):
        kept = Kept(tmp_path / str(after))
        kept.ran(ONE, at(5, 5))
        kept.ran(TWO, at(6, 4))
        kept.ran(THREE, at(2, 9))
        kept.start(fused(GROUP, [ONE, TWO]))
        kept.ran(fused(GROUP, [ONE, TWO]), at(7, 7))
        before = kept.places()
        assert before == [at(7, 7), at(7, 7), at(2, 9)]
        with monkeypatch.context() as patch:
            for module in (checkpoint, seats):
                patch.setattr(module, "replace_file", _crashing(after))
            try:
                step(kept)
                done = True
            except KeyboardInterrupt:
                done = False
        assert kept.places() == before, f"after {after} files"
        step(kept)
        assert kept.places() == before, f"again after {after} files"
        if done:
            break
    assert done and after > 1


def test_offsets_of_partitions_that_are_not_known() -> None:
    assert later({}, at(1, 2)) == at(1, 2)
    assert later({LAB: {"0": 3}}, at(1, 2)) == at(3, 2)
    assert later({LAB: {"0": EARLIEST}}, {LAB: {"1": 5}}) == at(EARLIEST, 5)
    assert earliest([at(1, 5), at(2, 4)]) == at(1, 4)
    assert earliest([at(1, 5), {LAB: {"0": 3}}]) == at(1, EARLIEST), "it reads all of partition 1"
    assert earliest([]) == {}
