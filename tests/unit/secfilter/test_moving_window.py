"""The changes of moving windows, against an oracle that computes each instant from scratch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from catalog.schema import Type
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
