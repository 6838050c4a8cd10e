"""Views of one role hold together, those of several roles add up where nothing is linked."""

from __future__ import annotations

import itertools
import random

import pytest

from catalog.role_view import RoleView, SmallestWindow, TupleWindow
from catalog.view_merging import all_of, covers, implies, one_of
from tests.oracle.expressions import evaluate
from tests.oracle.values import Row, timestamp
from tests.unit.catalog.views import STREAM, condition, view

WHOLE = RoleView()


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (view("price > 5"), view("price > 8"), view("price > 8")),
        (view("price > 5"), view("volume > 8"), view("price > 5 AND volume > 8")),
        (view(None, "ts", "symbol"), view(None, "symbol", "price"), view(None, "symbol")),
        (view(None, "price"), view("volume = 1"), view("volume = 1", "price")),
        (view(None, "price"), view(None, "price: avg"), view(None, "price: avg")),
        (view(None, "price: avg, max"), view(None, "price: max"), view(None, "price: max")),
        (view(None, "price: avg"), view(None, "price: max"), view(None, "price:")),
        (
            view(None, "price when volume > 1"),
            view(None, "price when volume > 2"),
            view(None, "price when volume > 2"),
        ),
        (
            view(None, "price: avg", window=(60, 10), minimum=3),
            view(None, "price: avg", window=(30, 20), minimum=2),
            view(None, "price: avg", window=(60, 20), minimum=3),
        ),
        (
            view(None, "price: avg", window=TupleWindow(6, 1)),
            view(None, "price: avg", window=TupleWindow(3, 2)),
            view(None, "price: avg", window=TupleWindow(6, 2)),
        ),
    ],
)
def test_policies_of_one_role_hold_together(
    first: RoleView, second: RoleView, both: RoleView
) -> None:
    assert all_of([first, second]) == both
    reverse = all_of([second, first])
    assert covers(reverse, both) and covers(both, reverse)
    assert covers(first, both) and covers(second, both)


def test_windows_of_two_types_show_nothing_together() -> None:
    """002 §3.5: no window is of both types."""
    by_time = view(None, "price: avg", window=(60, 10))
    by_tuples = view(None, "price: avg", window=TupleWindow(5, 2))
    for both in (all_of([by_time, by_tuples]), all_of([by_tuples, by_time])):
        assert both.rows == condition("FALSE")
        assert all_of([both, view("price > 5")]).rows == condition("FALSE")
        assert covers(by_time, both) and covers(by_tuples, both)
    assert not covers(by_time, by_tuples) and not covers(by_tuples, by_time)
    assert one_of([by_time, by_tuples]) is None


def test_who_must_tumble_by_one_policy_must_tumble() -> None:
    only = view(None, "price: avg")
    hopping = view(None, "price: avg", window=(60, 10))
    merged = all_of([only, hopping])
    assert merged.window == SmallestWindow(60_000, 10_000, tumbling=True)
    assert covers(only, merged) and not covers(only, hopping)


def test_rows_of_several_roles_add_up() -> None:
    found = one_of([view("price > 5", "price"), view("volume > 1", "price")])
    assert found == view("price > 5 OR volume > 1", "price")


def test_the_widest_view_counts() -> None:
    wide, narrow = view("price > 5"), view("price > 8", "symbol")
    assert one_of([narrow, wide]) == wide
    assert one_of([narrow, WHOLE]) == WHOLE


@pytest.mark.parametrize(
    "other",
    [
        view("volume > 1", "symbol"),
        view("volume > 1", "price when volume > 3"),
        view("volume > 1", "price: avg"),
        view("volume > 1", "price: avg", window=(60, 60)),
        view("volume > 1"),
    ],
)
def test_other_attributes_and_windows_do_not_add_up(other: RoleView) -> None:
    """One row would show together what neither role sees together."""
    assert one_of([view("price > 5", "price"), other]) is None


WIDER = [
    (WHOLE, view("price > 5", "price")),
    (view("price > 5"), view("price > 5 AND volume = 1")),
    (view("price > 5 OR volume = 1"), view("volume = 1")),
    (view("price >= 5"), view("price > 5")),
    (view(None, "price: avg", window=(60, 10)), view("FALSE")),
    (view("volume <> 3"), view("volume = 4")),
    (view("symbol <> 'A'"), view("symbol = 'B'")),
    (view("symbol IN ('A', 'B')"), view("symbol = 'B'")),
    (view(None, "price", "symbol"), view(None, "price")),
    (view(None, "price"), view(None, "price when volume > 1")),
    (view(None, "price"), view(None, "price: avg")),
    (view(None, "price: avg, max"), view(None, "price: avg")),
    (view(None, "price: avg", window=(60, 10)), view(None, "price: avg", window=(60, 20))),
    (view(None, "price: avg"), view(None, "price: avg", minimum=2)),
]


@pytest.mark.parametrize(("wide", "narrow"), WIDER)
def test_a_wider_view_covers_and_a_narrower_one_does_not(wide: RoleView, narrow: RoleView) -> None:
    assert covers(wide, narrow) and not covers(narrow, wide)
    assert covers(wide, wide)


def test_what_implication_says_is_so_for_all_values() -> None:
    """Every pair of conditions, decided by all values that can tell them apart."""
    chance = random.Random(24)
    parts = [
        f"{name} {sign} {value}"
        for name in ("volume", "price")
        for sign in ("=", "<>", "<", "<=", ">", ">=")
        for value in ((1, 2) if name == "volume" else (1.0, 2.0))
    ]
    parts += ["volume IS NULL", "NOT volume > 1", "FALSE"]
    texts = list(parts)
    for word in ("AND", "OR"):
        texts += [f"({a} {word} {b})" for a, b in (chance.sample(parts, 2) for _ in range(40))]
    tuples = [
        Row(STREAM.schema, (timestamp(0), "A", price, volume))
        for volume in (None, 0, 1, 2, 3)
        for price in (None, 0.5, 1.0, 1.5, 2.0, 2.5)
    ]
    conditions = [condition(text) for text in texts]
    true = {
        index: {n for n, values in enumerate(tuples) if evaluate(each, values) is True}
        for index, each in enumerate(conditions)
    }
    said = 0
    for left, right in itertools.product(range(len(conditions)), repeat=2):
        if implies(conditions[left], conditions[right]):
            said += 1
            assert true[left] <= true[right], (texts[left], texts[right])
    assert said > 2 * len(conditions)
