"""A DataFrame that was built ahead is used where it is that of the run which starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.plan import Aggregation, Source, Window
from catalog.runs import FusedRun, QueryRun, fused
from secfilter.kafka_options import Offsets
from secfilter.query_frames import Built, Place
from secfilter.tick_mark import new_mark
from tests.plans import grouped, whole
from tests.unit.secfilter.fusion_world import LAB, PARTITIONS, STREAM, query

_PLACE = Place({}, LabelLayout.of(Label.of(0)), False, ())


def _at(offset: int) -> Offsets:
    return {LAB: dict.fromkeys(PARTITIONS, offset)}


def _built(run: QueryRun, place: Place = _PLACE) -> Built:
    frame: Any = None
    return Built(run, place, new_mark("key"), frame)


def _group(numbers: Sequence[int], offset: int) -> FusedRun:
    """A fused run as it starts at that offset (`secfilter.seats`)."""
    run = fused("fused-1", [query(number, begins=_at(offset)) for number in numbers])
    return replace(run, starting_offsets=_at(offset))


def test_a_fused_run_may_have_come_further_since_it_was_prepared() -> None:
    assert _built(_group((1, 2), 3)).fits(_group((1, 2), 9))


def test_what_has_other_members_or_classes_is_another_one() -> None:
    built = _built(_group((1, 2), 3))
    assert not built.fits(_group((1,), 3))
    assert not built.fits(_group((1, 3), 3))
    assert not _built(query(1)).fits(query(1, classes=("c", "d")))
    changed = replace(query(1), reaches={STREAM.object_id: Label.of(0, 70)})
    assert not _built(query(1)).fits(changed)


def test_where_outputs_begin_counts_if_the_query_reads_from_before() -> None:
    run = query(1, begins=_at(3))
    built = _built(run, replace(_PLACE, late=run.outputs))
    assert built.fits(run)
    assert not built.fits(query(1, begins=_at(4)))


def test_a_query_that_keeps_state_is_prepared_as_a_whole() -> None:
    window = Window(10, 10)
    plan = whole(grouped(Source(STREAM), window, (), (Aggregation("n", "count", None),)))
    run = replace(query(1, begins=_at(3)), plan=plan)
    assert _built(run).fits(run)
    assert not _built(run).fits(replace(run, starting_offsets=_at(4)))
