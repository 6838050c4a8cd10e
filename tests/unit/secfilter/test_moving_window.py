"""The changes of moving windows, against an oracle that computes each instant from scratch."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.analysis import analyse_node
from catalog.changing_parts import ChangingParts
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Neighbour,
    Node,
    OrderKey,
    Project,
    Ranked,
    Source,
    Union,
)
from catalog.relation import RelationKind
from catalog.schema import Type
from catalog.time_source import TimeSource
from secfilter.columns import GIVEN_TO
from secfilter.lab import SEPARATOR, marked_reader
from secfilter.moving import _Operator
from secfilter.moving_aggregates import Computed, GroupRow, _double_sum, _mean
from secfilter.moving_rows import SingleRows
from secfilter.moving_rules import rules_of
from secfilter.moving_totals import Total, Totals
from secfilter.moving_values import text_of
from secfilter.moving_window import Arrival, HeldLimits, Window, WindowContent
from secfilter.standing import Receiver, Receivers
from tests.oracle.aggregates import aggregate
from tests.oracle.values import Tuple
from tests.unit.secfilter.moving_world import (
    EXAMPLES,
    EXPENSIVE,
    GIVENS,
    KEY,
    LEFT,
    MORE,
    NAMES,
    PRICE,
    REACH,
    RIGHT,
    STREAMS,
    WINDOWS,
    Given,
    aggregations,
    arrivals,
    check,
    check_standing,
    engine,
    join,
    named,
    renamed,
    shown,
    side,
    table,
)


@st.composite
def single(draw: st.DrawFn) -> Node:
    """A relation of one window, of the stream `a`."""
    passing = Filter(Moving(Source(STREAMS["a"]), draw(WINDOWS)), EXPENSIVE)
    if draw(st.booleans()):
        return shown(passing, *draw(st.sampled_from([("key", "price"), ("price",), ("key",)])))
    keys = (Column("key", KEY),)
    if draw(st.booleans()):
        return Aggregate(passing, keys, ())
    names = draw(st.sampled_from([("key", "n", "total", "low"), ("total", "kinds"), ("low",)]))
    return shown(Aggregate(passing, keys, aggregations(PRICE)), *names)


def over_join(draw: st.DrawFn, joined: Node, key: Expression, more: Expression) -> Node:
    """A relation over a join: its rows, different values, or groups."""
    if draw(st.booleans()):
        joined = Filter(joined, Call("<", (more, Literal(2, Type.BIGINT))))
    shape = draw(st.sampled_from(["rows", "distinct", "groups"]))
    if shape == "groups":
        summed = Aggregate(joined, (Column("key", key),), aggregations(more))
        return shown(summed, *draw(st.sampled_from([("key", "n", "low"), ("total", "kinds")])))
    columns = (Column("key", key), Column("more", more))[draw(st.integers(0, 1)) :]
    rows = Project(joined, columns)
    if shape == "rows":
        return rows
    return Aggregate(rows, tuple(Column(c.name, AttributeRef(c.name)) for c in columns), ())


@st.composite
def pairs(draw: st.DrawFn) -> Node:
    """A relation of two windows, of the streams `a` and `b`, or of `a` twice."""
    streams = draw(st.sampled_from(["ab", "aa"]))
    sides = [side(draw, alias, stream) for alias, stream in zip("ab", streams, strict=True)]
    joined = join(draw, sides[0], sides[1], [*JoinKind], "b")
    assert isinstance(joined, MovingJoin)
    if not joined.kind.shows_right:
        more: Expression = Call("-", (LEFT, Literal(1, Type.BIGINT)))
        return over_join(draw, joined, AttributeRef("a.key"), more)
    keys: list[Expression] = [AttributeRef("b.key"), Call("+", (LEFT, RIGHT))]
    return over_join(draw, joined, draw(st.sampled_from(keys)), MORE)


@st.composite
def several(draw: st.DrawFn) -> Node:
    """A relation of three windows."""
    names = draw(st.sampled_from(["abc", "aab", "aba"]))
    first, second, third = (
        side(draw, alias, name) for alias, name in zip("abc", names, strict=True)
    )
    low = join(draw, first, second, [*JoinKind], "b")
    assert isinstance(low, MovingJoin)
    if low.kind.shows_right and draw(st.booleans()):
        known = Call("is_null", (AttributeRef("b.price"),))
        low_rows: Node = Filter(low, known if draw(st.booleans()) else Call("not", (known,)))
    else:
        low_rows = low
    high = join(draw, low_rows, third, [*JoinKind], "c")
    assert isinstance(high, MovingJoin)
    other = AttributeRef("c.price") if high.kind.shows_right else Literal(2, Type.BIGINT)
    return over_join(draw, high, AttributeRef("a.key"), Call("-", (LEFT, other)))


@st.composite
def united(draw: st.DrawFn) -> Node:
    """A union of two windows."""
    branches = []
    for stream in draw(st.sampled_from(["ab", "aa"])):
        branch: Node = Moving(Source(STREAMS[stream]), draw(WINDOWS))
        if draw(st.booleans()):
            branch = Filter(branch, EXPENSIVE)
        branches.append(shown(branch, "key", "price"))
    rows: Node = Union(tuple(branches))
    shape = draw(st.sampled_from(["rows", "distinct", "groups"]))
    if shape == "groups":
        return shown(Aggregate(rows, (Column("key", KEY),), aggregations(PRICE)), "key", "n", "low")
    if shape == "distinct":
        return Aggregate(rows, (Column("key", KEY),), ())
    return Filter(rows, EXPENSIVE)


@st.composite
def ranked(draw: st.DrawFn) -> Node:
    """The rows of a window, of a union or of a join, in an order."""
    shape = draw(st.sampled_from(["single", "united", "joined"]))
    rows: Node = Moving(Source(STREAMS["a"]), draw(WINDOWS))
    if shape == "united":
        rows = Union((rows, Moving(Source(STREAMS["b"]), draw(WINDOWS))))
    elif shape == "joined":
        kinds = [kind for kind in JoinKind if kind is not JoinKind.SEMI]
        rows = join(draw, side(draw, "a", "a"), side(draw, "b", "b"), kinds, "b")
        rows = Project(rows, tuple(Column(n, AttributeRef(f"a.{n}")) for n in NAMES))
    elif draw(st.booleans()):
        rows = Filter(rows, EXPENSIVE)
    partition = draw(st.sampled_from([(), (KEY,)]))
    by = [OrderKey(ref, draw(st.booleans())) for ref in (PRICE, KEY)]
    offsets = draw(st.lists(st.sampled_from([1, 2, -1]), max_size=2))
    neighbours = tuple(
        Neighbour(f"n{number}", draw(st.sampled_from([PRICE, KEY])), offset)
        for number, offset in enumerate(offsets)
    )
    limit = draw(st.none() | st.integers(1, 3))
    number = draw(st.none() | st.just("rn"))
    node = Ranked(rows, partition, (*by[: draw(st.integers(1, 2))],), limit, number, neighbours)
    names = draw(st.sampled_from([("price",), ("key", "price"), ()]))
    names += ("rn",) if number else ()
    names += tuple(each.name for each in neighbours)
    return shown(node, *names) if names else node


@pytest.mark.parametrize("change", [each for each in Change if each is not Change.UPSERT])
@pytest.mark.parametrize(
    "roots",
    [single(), pairs(), several(), united(), ranked()],
    ids=["single", "pairs", "several", "united", "ranked"],
)
@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=st.tuples(GIVENS, GIVENS, GIVENS), data=st.data())
def test_an_engine_gives_what_each_instant_from_scratch_gives(
    change: Change,
    roots: st.SearchStrategy[Node],
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    check(data.draw(roots), change, rows, data)


@st.composite
def keyed(draw: st.DrawFn) -> Node:
    """Groups of one window or of two, with their key among what is shown."""
    shape = draw(st.sampled_from(["single", "totals", "united"]))
    window = MovingWindow() if shape == "totals" else draw(WINDOWS)
    rows: Node = Filter(Moving(Source(STREAMS["a"]), window), EXPENSIVE)
    if shape == "united":
        other = Moving(Source(STREAMS["b"]), draw(WINDOWS))
        rows = Union((shown(rows, "key", "price"), shown(other, "key", "price")))
    mean = (Aggregation("mean", "avg", PRICE), Aggregation("known", "count", PRICE))
    computed = (*aggregations(PRICE)[:3], *mean, Aggregation("high", "max", PRICE))
    if draw(st.booleans()) and shape != "totals":
        computed = aggregations(PRICE)
    groups = Aggregate(rows, (Column("key", KEY),), computed)
    over = draw(st.sampled_from(["nothing", "others", "new names"]))
    if over == "new names":
        return renamed(shown(groups, "n", "key", "total"), number="n", of="key", sum="total")
    return shown(groups, "n", "key", "total", "low") if over == "others" else groups


@pytest.mark.parametrize("change", [Change.UPSERT, Change.ISTREAM, Change.DSTREAM])
@settings(max_examples=EXAMPLES, deadline=None)
@given(root=keyed(), rows=st.tuples(GIVENS, GIVENS, GIVENS), data=st.data())
def test_groups_with_keys_give_upserts_and_deletions(
    change: Change,
    root: Node,
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    check(root, change, rows, data)


@st.composite
def newest(draw: st.DrawFn) -> Node:
    """The newest tuple of each key, if it fulfils a condition."""
    rows: Node = Moving(Source(STREAMS["a"]), MovingWindow(rows=1, partition=(KEY,)))
    if draw(st.booleans()):
        rows = Filter(rows, EXPENSIVE)
    return shown(rows, *draw(st.sampled_from([("price", "key"), ("key",)])))


@pytest.mark.parametrize("change", list(Change))
@settings(max_examples=EXAMPLES, deadline=None)
@given(root=newest(), rows=st.tuples(GIVENS, GIVENS, GIVENS), data=st.data())
def test_the_newest_tuple_of_each_key_gives_upserts_and_deletions(
    change: Change,
    root: Node,
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    check(root, change, rows, data)


@pytest.mark.parametrize("roots", [keyed(), newest()], ids=["groups", "newest"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=st.tuples(GIVENS, GIVENS, GIVENS), at=st.integers(-1, 20), data=st.data())
def test_the_rows_that_stand_are_the_newest_of_each_key(
    roots: st.SearchStrategy[Node],
    rows: tuple[list[Given], list[Given], list[Given]],
    at: int,
    data: st.DataObject,
) -> None:
    check_standing(data.draw(roots), rows, at)


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


def test_an_outer_join_over_a_semi_join_has_rows_without_a_witness() -> None:
    """They are labelled as other rows: what comes with a row does not decide about it."""
    by_key = ((AttributeRef("a.key"), AttributeRef("b.key")),)
    sides = [named(Moving(Source(STREAMS["a"]), MovingWindow()), alias) for alias in "ab"]
    semi = MovingJoin(sides[0], sides[1], by_key, None, JoinKind.SEMI)
    newest = named(Moving(Source(STREAMS["b"]), MovingWindow(rows=2)), "c")
    by_key = ((AttributeRef("a.key"), AttributeRef("c.key")),)
    joined = MovingJoin(semi, newest, by_key, None, JoinKind.RIGHT)
    root = shown(joined, "c.price")
    tables: dict[str, list[Tuple]] = {"a": [], "b": table([(0, None, 1, 0), (0, None, 2, 1)], 6)}
    moving = engine(root, Change.ISTREAM)
    for number, each in arrivals(root, tables):
        moving.take([each], number)
    found = {each.row: Label(each.label[0]) for each in moving.until(9)}
    assert found == {"1": REACH["a"] | Label.of(6), "2": REACH["a"] | Label.of(7)}
