"""Moving windows over upserts begin with all rows that count then, and with no part of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.analysis import analyse_node
from catalog.changing_parts import ChangingParts
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    Moving,
    MovingWindow,
    Source,
)
from catalog.relation import RelationKind
from catalog.time_source import TimeSource
from secfilter.columns import GIVEN_TO
from secfilter.lab import marked_reader
from secfilter.moving import _Operator
from secfilter.moving_rules import rules_of
from secfilter.moving_window import Arrival, HeldLimits, Window, WindowContent
from secfilter.standing import Receiver, Receivers
from tests.unit.secfilter.moving_world import (
    EXPENSIVE,
    KEY,
    STREAMS,
    engine,
    shown,
)


def test_a_row_that_is_known_changes_nothing_when_it_comes_again() -> None:
    window = Moving(Source(STREAMS["a"]), MovingWindow(rows=1, partition=(KEY,)))
    for change in Change:
        moving = engine(shown(window, "key", "price"), change)
        moving.take([Arrival(1, "7:id", (1,), "1", True, "1\x1f5", "")])
        first = [*moving.until(5)]
        again = [
            Arrival(6, f"7:stands:{key}", (1,), key, True, f"{key}\x1f{price}", "")
            for key, price in (("1", "5"), ("2", "8"))
        ]
        moving.take(again[:1])
        assert [*moving.until(6)] == [], "an instant without a change"
        assert moving.withheld == 0
        moving.take([replace(each, time=7) for each in again])
        second = [each.row for each in moving.until(7)]
        if change is not Change.DSTREAM:
            assert len(first) == 1
            assert any(row.endswith("2\x1f8") for row in second), "a row that is new"


def test_a_window_over_upserts_begins_with_all_rows_that_stand() -> None:
    """Before them it has a part of the keys, and groups of a part would be wrong."""
    upserts = replace(STREAMS["a"], kind=RelationKind.OUTPUT, keys=("key",), time=TimeSource.BROKER)
    window = Moving(Source(upserts), MovingWindow(rows=1, partition=(KEY,)))
    root = Aggregate(window, (), (Aggregation("n", "count", None),))
    parts = ChangingParts.of(analyse_node(root))
    limits = HeldLimits(99, 9_999)
    rules = rules_of(parts, Change.ISTREAM, limits, [(1,)], whole=True)
    moving = rules.empty()
    moving.take([Arrival(1, "7:a", (1,), "1", True, "", "")])
    assert [*moving.until(2)] == []
    stored = moving.to_text()
    moving = rules.empty()
    moving.restore(stored)
    standing = [
        Arrival(3, f"7:stands:{key}", (1,), key, passes, "", "")
        for key, passes in (("1", True), ("2", True), ("", False))
    ]
    moving.take([*standing, Arrival(3, "7:b", (1,), "2", True, "", "")])
    moving.take([Arrival(4, "7:c", (1,), "3", True, "", "")])
    assert [each.row for each in moving.until(3)] == ["2"]
    stored = moving.to_text()
    moving = rules.empty()
    moving.restore(stored)
    assert [each.row for each in moving.until(4)] == ["3"]
    assert moving.withheld == 0
    # Without rows that stand, the mark alone says that there are none.
    empty = rules.empty()
    empty.take([standing[2], Arrival(4, "7:c", (1,), "3", True, "", "")])
    assert [each.row for each in empty.until(4)] == ["1"]
    # Elsewhere no output gives them, so nothing waits for them.
    by_data = replace(upserts, time=TimeSource.DATA)
    for whole, relation in ((False, upserts), (True, by_data)):
        moved = replace(root, input=replace(window, input=Source(relation)))
        made = rules_of(
            ChangingParts.of(analyse_node(moved)), Change.ISTREAM, limits, [(1,)], whole=whole
        ).empty()
        made.take([Arrival(1, "7:a", (1,), "1", True, "", "")])
        assert [each.row for each in made.until(2)] == ["1"]


def standing_for(time: int, key: str, reader: int | None = None) -> Arrival:
    """A row that stands, or the mark for a reader behind those of the time."""
    if reader is None:
        return Arrival(time, f"7:stands:{key}{time}", (1,), key, True, key, "")
    return Arrival(time, f"7:stands:{reader}:{key}{time}", (1,), "", False, "", "")


def test_a_query_does_not_begin_with_what_is_left_of_the_rows_for_another_one() -> None:
    """Its first offset may be behind some of them."""
    content = WindowContent(Window(None, 1, after_standing=True, readers=frozenset({11, 12})))
    for each in (
        *(standing_for(10, "b"), standing_for(10, "c"), standing_for(10, "", 13)),
        # The mark of an older program names nobody.
        Arrival(10, "7:stands:0a", (1,), "", False, "", ""),
        Arrival(15, "7:x", (1,), "b", True, "b", ""),
    ):
        content.wait(each)
    stored = content.state()
    content = WindowContent(content.window)
    content.restore(stored)
    assert content.arriving(10) == [] and not content.begun
    assert content.arriving(15) == [] and not content.begun
    for each in (*(standing_for(20, key) for key in "abc"), standing_for(20, "", 12)):
        content.wait(each)
    assert [each.partition for each in content.arriving(20)] == ["a", "b", "c"]
    assert content.begun and content.size == 0


def test_each_reader_has_a_mark_of_its_own_behind_the_rows_of_all() -> None:
    window = Moving(Source(STREAMS["a"]), MovingWindow())
    root = Aggregate(window, (Column("key", KEY),), (Aggregation("n", "count", None),))
    parts, limits = ChangingParts.of(analyse_node(root)), HeldLimits(99, 9_999)
    rules = rules_of(parts, Change.UPSERT, limits, [(1,)], ("key",)).read_by([5])
    assert [each.readers for each in rules.windows] == [frozenset({5})]
    relation = rules.empty()
    relation.take([Arrival(1, "7:a", (1,), "", True, "1", "")])
    assert len([*relation.until(2)]) == 1
    due = (
        Receiver("out.o.a", ("out.o.a",), 1),
        Receiver("lab.o 11", ("lab.o",), 1, 11),
        Receiver("lab.o 12", ("lab.o",), 1, 12),
    )
    receivers = Receivers(due, grow=True, words=(1,))
    made = _Operator("o", rules, ("__label_0",), receivers)._standing(receivers, relation, 2, due)
    given = [(to, number) for each in made for to, number in each[[GIVEN_TO, "__number"]].values]
    assert given == [("out.o.a,lab.o", 0), ("lab.o,=11", -1), ("lab.o,=12", -1)]


@pytest.mark.parametrize(
    ("lineage", "reader"),
    [
        ("7:stands:11:0af", 11),
        ("7:stands:0af", None),
        ("7:stands::0af", None),
        ("7:11:0af", None),
        ("7:stands:1a:0af", None),
        ("7:0:5", None),
    ],
)
def test_the_key_of_a_mark_names_its_reader(lineage: str, reader: int | None) -> None:
    assert marked_reader(lineage) == reader


def test_a_tuple_that_no_row_shows_is_not_kept() -> None:
    """So deletions cost nothing. A row of RSTREAM has the labels of all tuples of the window."""
    window = Moving(Source(STREAMS["a"]), MovingWindow(rows=1, partition=(KEY,)))
    for change, kept in ((Change.UPSERT, 0), (Change.ISTREAM, 0), (Change.RSTREAM, 1)):
        moving = engine(shown(Filter(window, EXPENSIVE), "key"), change)
        moving.take([Arrival(1, "a", (1,), "1", True, "1", "")])
        moving.take([Arrival(2, "b", (2,), "1", False, "1", "")])
        assert [each.instant for each in moving.until(9)][:1] == [1]
        assert sum(content.size for content in moving.contents) == kept
