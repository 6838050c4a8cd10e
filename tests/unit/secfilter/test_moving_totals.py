"""The totals of groups in moving windows: their limits, their stored form, and their doubles."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Moving,
    MovingWindow,
    Source,
)
from catalog.schema import Type
from secfilter.lab import SEPARATOR
from secfilter.moving_aggregates import Computed, GroupRow, _double_sum, _mean
from secfilter.moving_rows import SingleRows
from secfilter.moving_totals import Total, Totals
from secfilter.moving_values import text_of
from secfilter.moving_window import Arrival, HeldLimits
from tests.oracle.aggregates import aggregate
from tests.unit.secfilter.moving_world import (
    KEY,
    PRICE,
    STREAMS,
    engine,
)


def counted(key: str, at: int, value: str = "1") -> Arrival:
    return Arrival(at, f"{at}{key}", (1,), "", True, key, value)


TOTALS = Aggregate(
    Moving(Source(STREAMS["a"]), MovingWindow()),
    (Column("key", KEY),),
    (Aggregation("n", "count", None), Aggregation("high", "max", PRICE)),
)


def test_beyond_the_limit_no_new_group_opens_and_the_others_go_on() -> None:
    moving = engine(TOTALS, Change.UPSERT)
    assert isinstance(moving.groups, Totals)
    moving.groups.limits = HeldLimits(2, 100)
    # The third key comes at the same instant as the second one.
    moving.take([counted("1", 1), counted("2", 2), counted("3", 2), counted("1", 3)])
    rows = [each.row.split(SEPARATOR) for each in moving.until(9)]
    assert [row[:3] for row in rows] == [
        ["false", "1", "1"],
        ["false", "2", "1"],
        ["false", "1", "2"],
    ]
    assert moving.withheld == 1
    assert sum(content.size for content in moving.contents) == 0, "no tuple is kept"


def test_long_values_of_groups_are_withheld() -> None:
    moving = engine(TOTALS, Change.UPSERT)
    assert isinstance(moving.groups, Totals)
    moving.groups.limits = HeldLimits(9, 12)
    moving.take([counted("1", 1, "5" * 6), counted("2", 2, "5" * 6), counted("1", 3, "7")])
    # The group that is known goes on.
    assert [each.instant for each in moving.until(9)] == [1, 3]
    assert moving.withheld == 1


@pytest.mark.parametrize(
    ("values", "withheld"),
    [
        (["b", "a" * 9, "c"], 0),  # The long text is not the greatest one.
        (["b", "c" * 9, "c"], 1),
        (["b" * 9, "c" * 9, "d"], 0),
        (["b", "c" * 5, "d" * 5, "d"], 1),  # Each text alone has room.
    ],
)
def test_a_group_takes_no_longer_text_than_there_is_room_for(
    values: list[str], withheld: int
) -> None:
    greatest = (Computed("count"), Computed("max", Type.STRING, 0))
    groups = Totals(GroupRow(1, greatest, (0, 1, 2)), HeldLimits(9, 99))
    first, *others = [counted("1", n, value) for n, value in enumerate(values)]
    rows = SingleRows(1)
    assert groups.has_room(first)
    assert [*groups.apply([], [*rows.all([[first]])])]
    groups.limits = HeldLimits(9, groups.characters + 6)
    room = [groups.has_room(each) for each in others]
    assert room.count(False) == withheld
    taken = [each for each, has_room in zip(others, room, strict=True) if has_room]
    assert [*groups.apply([], [*rows.all([taken])])]
    assert groups.characters <= groups.limits.characters
    assert not groups.has_room(counted("2", 9, "x" * 99))


def test_totals_go_on_with_the_tuples_that_an_older_form_kept() -> None:
    held = [counted("1", 1, "4").as_list(), counted("2", 2, "5").as_list()]
    windows = [{"waiting": [], "held": held}]
    moving = engine(TOTALS, Change.ISTREAM)
    moving.restore(json.dumps({"form": 2, "done": 5, "windows": windows}))
    moving.take([counted("1", 6, "3")])
    assert [each.row for each in moving.until(9)] == [SEPARATOR.join(("1", "2", "4"))]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none()))
def test_a_total_of_doubles_is_that_of_all_values(values: list[float | None]) -> None:
    known = [each for each in values if each is not None]
    for function, whole in (("sum", _double_sum), ("avg", _mean), ("min", min), ("max", max)):
        each = Computed(function, Type.DOUBLE, 0)
        total = Total()
        for value in values:
            total.add(value, each)
            total = Total.restored(json.loads(json.dumps(total.state())), each)
        assert text_of(total.value(each)) == text_of(whole(known) if known else None)


HUGE = [1e308, 1e308, -1e308, -1e308]


@pytest.mark.parametrize(
    ("values", "total"),
    [(HUGE, 0.0), ([*HUGE, 3.0], 3.0), ([1e308, 1e308, -1e308], 1e308), ([1e308, 1e308], None)],
)
def test_a_sum_of_doubles_does_not_depend_on_the_order(
    values: list[float], total: float | None
) -> None:
    for several in permutations(values):
        assert _double_sum(several) == total
        assert aggregate("sum", several) == total
        assert _mean(several) == (None if total is None else total / len(values))
        kept = Total()
        for value in several:
            kept.add(value, Computed("sum", Type.DOUBLE, 0))
        assert kept.value(Computed("sum", Type.DOUBLE, 0)) == total
