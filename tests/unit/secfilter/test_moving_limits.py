"""What a moving window holds is bounded and counted, and its stored form is read again."""

from __future__ import annotations

import pytest

from catalog.expression import AttributeRef, Literal
from catalog.plan import (
    Change,
    Column,
    Moving,
    MovingJoin,
    MovingWindow,
    Project,
    Source,
)
from catalog.schema import Type
from secfilter.moving_window import Arrival, HeldLimits
from tests.unit.secfilter.moving_world import (
    NAMES,
    STREAMS,
    engine,
)


def plain(time: int, row: str = "") -> Arrival:
    return Arrival(time, f"{time}{row}", (1,), "", True, row or str(time), "")


ONE = Moving(Source(STREAMS["a"]), MovingWindow(rows=1))


def test_what_is_beyond_the_limit_is_withheld_and_counted() -> None:
    moving = engine(ONE, Change.ISTREAM, 2)
    moving.take(plain(n) for n in range(3))
    assert [each.row for each in moving.until(5)] == ["0", "1"]
    assert moving.withheld == 1
    # There is room again, because the window holds one row. What is too old is withheld as well.
    moving.take(plain(n) for n in (4, 6))
    assert [each.row for each in moving.until(9)] == ["6"]
    assert moving.withheld == 2


def test_pairs_beyond_the_limit_are_withheld_with_the_tuple_that_would_make_them() -> None:
    sides = [
        Project(
            Moving(Source(STREAMS["a"]), MovingWindow(range_ms=3)),
            tuple(Column(f"{alias}.{name}", AttributeRef(name)) for name in NAMES),
        )
        for alias in "ab"
    ]
    joined = MovingJoin(sides[0], sides[1], ((AttributeRef("a.key"), AttributeRef("b.key")),))
    root = Project(joined, (Column("one", Literal(1, Type.BIGINT)),))
    moving = engine(root, Change.ISTREAM, 8)
    moving.rows.root.held.limits = HeldLimits(2, 100)  # type: ignore[attr-defined]
    moving.take([plain(1, "x"), plain(2, "x")], 0)
    moving.take([plain(3, "x"), plain(4, "x"), plain(4, "y")], 1)
    assert [each.instant for each in moving.until(5)] == [3, 3]
    assert moving.withheld == 1
    # The two left tuples have gone, so there is room.
    moving.take([plain(6_000, "x")], 0)
    moving.take([plain(6_000, "x")], 1)
    assert [each.instant for each in moving.until(9_000)] == [6_000]
    assert moving.withheld == 1


def test_texts_beyond_the_limit_are_withheld() -> None:
    moving = engine(ONE, Change.ISTREAM, characters=4)
    moving.take([plain(1, "abc"), plain(2, "de"), plain(3, "f")])
    assert [each.row for each in moving.until(5)] == ["abc", "f"]
    assert moving.withheld == 1
    # One tuple is left, with its text of one character.
    moving.take([plain(6, "ghi"), plain(7, "j")])
    assert [each.row for each in moving.until(9)] == ["ghi"]
    assert moving.withheld == 2


def test_long_pairs_are_withheld() -> None:
    sides = [
        Project(
            Moving(Source(STREAMS["a"]), MovingWindow()),
            tuple(Column(f"{alias}.{name}", AttributeRef(name)) for name in NAMES),
        )
        for alias in "ab"
    ]
    joined = MovingJoin(sides[0], sides[1], ((AttributeRef("a.key"), AttributeRef("b.key")),))
    text = Literal("12345678", Type.STRING)
    root = Project(joined, (Column("x", AttributeRef("a.price")), Column("y", text)))
    moving = engine(root, Change.ISTREAM)
    moving.rows.root.held.limits = HeldLimits(9, 24)  # type: ignore[attr-defined]
    moving.take([Arrival(n, str(n), (1,), "", True, "x", "123") for n in (1, 2)], 0)
    moving.take([plain(n, "x") for n in (3, 4)], 1)
    # Two pairs have 22 characters with the constant, and four would have 44.
    assert [each.instant for each in moving.until(5)] == [3, 3]
    assert moving.withheld == 1


def test_a_state_of_one_window_in_its_first_form_is_read() -> None:
    first = (
        '{"form":1,"done":7,"waiting":[[9,"9",[1],"",true,"9",""]],'
        '"held":[[7,"7",[2],"",true,"7",""]]}'
    )
    moving = engine(ONE, Change.DSTREAM)
    moving.restore(first)
    assert [(each.row, each.label) for each in moving.until(9)] == [("7", (3,))]


def test_a_state_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="another form"):
        engine(ONE, Change.ISTREAM).restore('{"form":5}')
