"""Rows in an order of all tuples so far: what is kept of them, and that it changes no result."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.expression import AttributeRef, Call
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    Moving,
    MovingWindow,
    Neighbour,
    Node,
    OrderKey,
    Project,
    Ranked,
    Source,
    Union,
)
from secfilter.lab import SEPARATOR
from secfilter.moving_first_rows import FirstRows
from secfilter.moving_ranks import Ranks
from secfilter.moving_relation import MovingRelation
from secfilter.moving_window import Arrival, HeldLimits
from tests.lanes import number_of
from tests.unit.secfilter.moving_world import (
    EXPENSIVE,
    GIVENS,
    KEY,
    PRICE,
    STREAMS,
    Given,
    arrivals,
    check,
    check_standing,
    engine,
    renamed,
    shown,
    table,
)

EXAMPLES = number_of("FIRST_ROWS", sample=25, long=600)
AT = AttributeRef("at")
NONE: st.SearchStrategy[list[Given]] = st.just([])
ROWS = st.tuples(GIVENS, NONE, NONE)
OLDEST, NEWEST = (OrderKey(AT),), (OrderKey(AT, descending=True),)


def endless(stream: str = "a") -> Node:
    return Moving(Source(STREAMS[stream]), MovingWindow())


@st.composite
def first_rows(draw: st.DrawFn) -> Node:
    """An order of all tuples so far, with a limit or with neighbours."""
    rows = endless()
    if draw(st.booleans()):
        rows = Filter(rows, EXPENSIVE)
    if draw(st.booleans()):
        more = Filter(endless(), EXPENSIVE)
        rows = Union((rows, more))
    partition = draw(st.sampled_from([(), (KEY,)]))
    order = draw(st.sampled_from([OLDEST, NEWEST, (OrderKey(PRICE, True),), (OrderKey(KEY),)]))
    offsets = draw(st.lists(st.sampled_from([1, 2, -1, -2]), max_size=2, unique=True))
    neighbours = tuple(Neighbour(f"n{each}", PRICE, each) for each in offsets)
    limit = draw(st.none() | st.integers(1, 3)) if neighbours else draw(st.integers(1, 3))
    number = draw(st.none() | st.just("rn")) if limit else None
    names = ["key", "price", *(["rn"] if number else []), *(each.name for each in neighbours)]
    return shown(Ranked(rows, partition, order, limit, number, neighbours), *names)


@pytest.mark.parametrize("change", [each for each in Change if each is not Change.UPSERT])
@settings(max_examples=EXAMPLES, deadline=None)
@given(root=first_rows(), rows=ROWS, data=st.data())
def test_an_engine_gives_what_each_instant_from_scratch_gives(
    change: Change,
    root: Node,
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    check(root, change, rows, data)


@st.composite
def groups_of_first_rows(draw: st.DrawFn) -> Node:
    """Groups of the first rows of each key."""
    order = draw(st.sampled_from([OLDEST, NEWEST, (OrderKey(PRICE),)]))
    first = Ranked(endless(), (KEY,), order, draw(st.integers(1, 2)))
    by = draw(st.sampled_from([(), (Column("key", KEY),), (Column("price", PRICE),)]))
    return Aggregate(first, by, (Aggregation("n", "count", None), Aggregation("low", "min", PRICE)))


@st.composite
def groups_of_neighbours(draw: st.DrawFn) -> Node:
    """Groups of all rows, each with what is beside it."""
    order = draw(st.sampled_from([OLDEST, NEWEST]))
    offset = draw(st.sampled_from([1, -1, 2]))
    rows = Ranked(endless(), (KEY,), order, None, None, (Neighbour("beside", PRICE, offset),))
    by = draw(st.sampled_from([(), (Column("key", KEY),), (Column("price", PRICE),)]))
    counted = Aggregation("n", "count", None)
    return Aggregate(rows, by, (counted, Aggregation("low", "min", AttributeRef("beside"))))


@pytest.mark.parametrize("change", [Change.ISTREAM, Change.DSTREAM])
@pytest.mark.parametrize("groups", [groups_of_first_rows(), groups_of_neighbours()])
@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=ROWS, data=st.data())
def test_rows_below_groups(
    change: Change,
    groups: st.SearchStrategy[Node],
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    """Also a row that has its neighbours still counts in groups."""
    check(data.draw(groups), change, rows, data)


@st.composite
def rows_over_neighbours(draw: st.DrawFn) -> Node:
    """Rows, each with what is beside it, behind a condition."""

    def branch() -> Node:
        order, by = draw(st.sampled_from([OLDEST, NEWEST])), draw(st.sampled_from([(), (KEY,)]))
        offsets = draw(st.lists(st.sampled_from([1, 2, -1]), min_size=1, max_size=2, unique=True))
        beside = tuple(Neighbour(f"n{place}", PRICE, each) for place, each in enumerate(offsets))
        more = Call(">=", (PRICE, AttributeRef("n0")))
        return shown(Filter(Ranked(endless(), by, order, None, None, beside), more), "key", "n0")

    return Union((branch(), branch())) if draw(st.booleans()) else branch()


@pytest.mark.parametrize("change", [Change.ISTREAM, Change.DSTREAM])
@settings(max_examples=EXAMPLES, deadline=None)
@given(root=rows_over_neighbours(), rows=ROWS, data=st.data())
def test_rows_below_a_condition(
    change: Change,
    root: Node,
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    check(root, change, rows, data)


@pytest.mark.parametrize(("order", "offset"), [(OLDEST, 1), (OLDEST, -1), (NEWEST, 2)])
def test_a_condition_over_neighbours_keeps_no_rows_that_cannot_change(
    order: tuple[OrderKey, ...], offset: int
) -> None:
    """Neither do the texts of what it keeps grow, so there is always room for a further row."""
    beside = (Neighbour("beside", PRICE, offset),)
    rows = Ranked(endless(), (KEY,), order, None, None, beside)
    root = Filter(rows, EXPENSIVE)
    moving, results = engine(root, Change.ISTREAM, characters=300), 0
    (below,) = [side for _, side in moving.root.below()]
    tuples = {name: table([(n, n % 2, n, n % 6) for n in range(200)], 0) for name in "abc"}
    for number, each in arrivals(root, tuples):
        moving.take([each], number)
        results += len([*moving.until(each.time)])
        held = below.held()
        assert len(held) <= 4
        assert below.characters == sum(tuple_.characters for tuple_ in held)
        assert len(below.labels.counts) <= len(held)
        assert moving.more_characters == below.characters
    assert moving.withheld == 0
    assert results >= 198


@st.composite
def one_of_each(draw: st.DrawFn) -> Node:
    order = draw(st.sampled_from([OLDEST, NEWEST, (OrderKey(PRICE, True),)]))
    number = draw(st.none() | st.just("rn"))
    first = Ranked(endless(), (KEY,), order, 1, number)
    if draw(st.booleans()):
        return renamed(first, best="price", of="key")
    return shown(first, "key", "price")


@settings(max_examples=EXAMPLES, deadline=None)
@given(root=one_of_each(), rows=ROWS, data=st.data())
def test_the_first_row_of_each_key_gives_upserts(
    root: Node, rows: tuple[list[Given], list[Given], list[Given]], data: st.DataObject
) -> None:
    check(root, Change.UPSERT, rows, data)


@settings(max_examples=EXAMPLES, deadline=None)
@given(root=one_of_each(), rows=ROWS, at=st.integers(-1, 20))
def test_the_rows_that_stand_are_the_newest_of_each_key(
    root: Node, rows: tuple[list[Given], list[Given], list[Given]], at: int
) -> None:
    check_standing(root, rows, at)


def ranked(limit: int | None, order: tuple[OrderKey, ...], *offsets: int) -> Node:
    neighbours = tuple(Neighbour(f"n{each}", PRICE, each) for each in offsets)
    return shown(
        Ranked(endless(), (KEY,), order, limit, None, neighbours),
        *("key", "price", *(each.name for each in neighbours)),
    )


def arrival(time: int, key: str, price: int, root: Node) -> Arrival:
    """A tuple as Spark would give it for `root`: what is shown, and what orders it."""
    assert isinstance(root, Project)
    assert isinstance(root.input, Ranked)
    (by,) = root.input.order
    order = str(time) if by.attribute == AT else str(price)
    values = [key, order, *(str(price) for _ in root.input.neighbours)]
    row = SEPARATOR.join([key, str(price)])
    return Arrival(time, f"{time:05}{key}", (1,), "", True, row, SEPARATOR.join(values))


def kept(moving: MovingRelation) -> list[int]:
    """The times of the tuples that are kept."""
    state = json.loads(moving.to_text())
    assert [window["held"] for window in state["windows"]] == [[]]
    return sorted(values[1] for values in state["groups"])


@pytest.mark.parametrize(
    ("root", "times"),
    [
        (ranked(1, NEWEST), [8, 9]),
        (ranked(2, NEWEST), [6, 7, 8, 9]),
        (ranked(1, OLDEST), [0, 1]),
        (ranked(1, (OrderKey(PRICE),)), [8, 9]),
        (ranked(1, OLDEST, -1), [0, 1, 2, 3]),
        (ranked(None, OLDEST, 1), [8, 9]),
        (ranked(None, OLDEST, 2, -1), [4, 5, 6, 7, 8, 9]),
        (ranked(None, NEWEST, 1), [8, 9]),
        (ranked(None, (OrderKey(PRICE),), 1), None),
    ],
)
def test_only_rows_that_can_still_count_are_kept(root: Node, times: list[int] | None) -> None:
    moving = engine(root, Change.ISTREAM)
    assert isinstance(moving.groups, FirstRows) is (times is not None)
    assert isinstance(moving.groups, Ranks)
    if times is not None:
        moving.take([arrival(n, str(n % 2), 100 - n, root) for n in range(10)])
        assert [*moving.until(9)]
        assert kept(moving) == times
        assert isinstance(moving.groups, FirstRows)
        assert moving.groups.size == len(times)
        length = sum(
            each.row.tuples[0].characters
            for several in moving.groups.found.values()
            for each in several
            if each.row.tuples[0] is not None
        )
        assert moving.groups.characters == length


def test_the_rows_of_rstream_have_the_labels_of_all_tuples_so_all_are_kept() -> None:
    assert not isinstance(engine(ranked(1, NEWEST), Change.RSTREAM).groups, FirstRows)


def test_beyond_the_limit_no_further_row_is_kept_and_known_keys_go_on() -> None:
    root = ranked(1, NEWEST)
    moving = engine(root, Change.UPSERT)
    assert isinstance(moving.groups, FirstRows)
    moving.groups.limits = HeldLimits(2, 1_000)
    # The third key comes at the same instant as the second one.
    moving.take(arrival(n, key, n, root) for n, key in ((1, "1"), (2, "2"), (2, "3"), (3, "1")))
    rows = [tuple(each.row.split(SEPARATOR)) for each in moving.until(9)]
    assert rows == [("false", "1", "1"), ("false", "2", "2"), ("false", "1", "3")]
    assert moving.withheld == 1
    assert Counter(kept(moving)) == {2: 1, 3: 1}


def test_long_rows_are_withheld() -> None:
    root = ranked(1, NEWEST)
    moving = engine(root, Change.ISTREAM)
    assert isinstance(moving.groups, FirstRows)
    # Each row has seven characters: its row has three, and what orders it four.
    moving.groups.limits = HeldLimits(9, 13)
    moving.take([arrival(10, "1", 5, root), arrival(11, "2", 5, root)])
    assert [each.instant for each in moving.until(20)] == [10]
    assert moving.withheld == 1


def test_a_row_that_takes_the_place_of_another_needs_room_for_what_it_is_longer() -> None:
    root = ranked(1, NEWEST)
    moving = engine(root, Change.ISTREAM)
    assert isinstance(moving.groups, FirstRows)
    moving.groups.limits = HeldLimits(9, 13)
    # Seven characters, seven again, then one more for each further digit.
    given = [(10, 5), (11, 6), (12, 2_000), (13, 20_000_000), (14, 7)]
    moving.take([arrival(time, "1", price, root) for time, price in given])
    moving.take([arrival(15, "2", 1, root)])
    assert [each.instant for each in moving.until(20)] == [10, 11, 12, 14]
    assert moving.withheld == 2


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    limit=st.integers(1, 3),
    order=st.sampled_from([OLDEST, NEWEST, (OrderKey(PRICE),)]),
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.booleans()), max_size=20),
)
def test_rows_are_never_longer_than_there_is_room_for(
    limit: int, order: tuple[OrderKey, ...], rows: list[tuple[int, int, bool]]
) -> None:
    root = ranked(limit, order)
    moving = engine(root, Change.ISTREAM)
    assert isinstance(moving.groups, FirstRows)
    moving.groups.limits = HeldLimits(5, 40)
    for number, (time, digits, other) in enumerate(rows):
        each = arrival(time, str(int(other)), 10**digits, root)
        moving.take([replace(each, lineage=f"{number:05}")])
    for time in range(4):
        for _ in moving.until(time):
            pass
        assert moving.groups.size <= 5
        assert moving.groups.characters <= 40


def test_the_tuples_that_an_older_form_kept_are_taken_over() -> None:
    root = ranked(1, NEWEST)
    held = [arrival(n, key, n, root).as_list() for n, key in ((1, "1"), (2, "2"), (3, "1"))]
    windows = [{"waiting": [], "held": held}]
    moving = engine(root, Change.DSTREAM)
    moving.restore(json.dumps({"form": 3, "done": 5, "windows": windows, "groups": []}))
    assert kept(moving) == [2, 3]
    moving.take([arrival(6, "1", 6, root)])
    assert [each.row for each in moving.until(9)] == [SEPARATOR.join("13")]


def test_rows_below_groups_that_an_older_form_kept_are_taken_over() -> None:
    first = Ranked(endless(), (KEY,), NEWEST, 1)
    root = Aggregate(first, (), (Aggregation("n", "count", None),))

    def given(n: int, key: str) -> Arrival:
        texts = (SEPARATOR.join([str(n), key, "5"]), SEPARATOR.join([key, str(n)]))
        return Arrival(n, f"{n}", (1,), "", True, *texts)

    held = [given(n, key).as_list() for n, key in ((1, "1"), (2, "2"), (3, "1"))]
    windows = [{"waiting": [], "held": held}]
    moving = engine(root, Change.ISTREAM)
    moving.restore(
        json.dumps({"form": 3, "done": 5, "windows": windows, "groups": [], "below": [[]]})
    )
    moving.take([given(6, "3")])
    assert [each.row for each in moving.until(9)] == ["3"]
