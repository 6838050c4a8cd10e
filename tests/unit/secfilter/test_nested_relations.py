"""Relations that are made of each other: groups of groups, joins of groups, orders of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from catalog.analysis import analyse_node
from catalog.errors import InvalidInput
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
    ToStream,
    Union,
    walk,
)
from catalog.schema import Type
from catalog.stable_names import depends_on_others
from catalog.upserts import keys_of, usually_upserts
from secfilter.lab import SEPARATOR
from secfilter.moving_window import Arrival, HeldLimits
from tests.lanes import number_of
from tests.oracle.plans import run
from tests.oracle.values import Tuple, Value
from tests.unit.secfilter.moving_world import (
    EXPENSIVE,
    GIVENS,
    KEY,
    PRICE,
    REACH,
    STREAMS,
    WINDOWS,
    Given,
    check,
    check_standing,
    engine,
    shown,
    table,
)

EXAMPLES = number_of("NESTED", sample=30, long=600)
ONE = Literal(1, Type.BIGINT)
ROWS = st.tuples(GIVENS, GIVENS, GIVENS)
AGGREGATIONS = (
    Aggregation("n", "count", None),
    Aggregation("total", "sum", PRICE),
    Aggregation("low", "min", PRICE),
    Aggregation("high", "max", PRICE),
    Aggregation("kinds", "count_distinct", PRICE),
    Aggregation("newest", "last", PRICE),
)
COMPUTED = tuple(each.name for each in AGGREGATIONS)


def pair(node: Node, key: Expression, price: Expression) -> Node:
    """A relation with the attributes `key` and `price`, as all relations here have."""
    return Project(node, (Column("key", key), Column("price", price)))


def named(draw: st.DrawFn, *names: str) -> AttributeRef:
    return AttributeRef(draw(st.sampled_from(names)))


def window(draw: st.DrawFn, stream: str) -> Node:
    """A window that holds the tuples of a stream, or the dear ones."""
    rows = shown(Moving(Source(STREAMS[stream]), draw(WINDOWS)), "key", "price")
    return Filter(rows, EXPENSIVE) if draw(st.booleans()) else rows


def groups(draw: st.DrawFn, rows: Node) -> Node:
    """The groups of a relation by one attribute or by none, or its different rows."""
    by = draw(st.sampled_from(["key", "price", "neither", "distinct"]))
    if by == "distinct":
        return Aggregate(rows, (Column("key", KEY), Column("price", PRICE)), ())
    if by == "neither":
        names = COMPUTED[:5]
        return pair(Aggregate(rows, (), AGGREGATIONS[:5]), named(draw, *names), named(draw, *names))
    made = Aggregate(rows, (Column("own", AttributeRef(by)),), AGGREGATIONS)
    if draw(st.integers(0, 3)) == 0:
        made = Filter(made, Call(">", (AttributeRef("n"), ONE)))  # type: ignore[assignment]
    return pair(made, named(draw, "own", "own", "n"), named(draw, *COMPUTED))


def first_ones(draw: st.DrawFn, rows: Node) -> Node:
    """The first rows of a relation in an order, perhaps with their numbers."""
    order = tuple(OrderKey(ref, draw(st.booleans())) for ref in (PRICE, KEY))
    partition = draw(st.sampled_from([(), (KEY,)]))
    limit, number = draw(st.integers(1, 3)), draw(st.none() | st.just("rn"))
    made = Ranked(rows, partition, order, limit, number)
    return pair(made, KEY, AttributeRef(number) if number and draw(st.booleans()) else PRICE)


def joined(draw: st.DrawFn, left: Node, right: Node) -> Node:
    sides = [
        Project(each, tuple(Column(f"{alias}.{n}", AttributeRef(n)) for n in ("key", "price")))
        for alias, each in (("a", left), ("b", right))
    ]
    on = draw(st.sampled_from([("a.key", "b.key"), ("a.price", "b.price"), ("a.key", "b.price")]))
    more = Call("<=", (AttributeRef("a.price"), AttributeRef("b.key")))
    kind = draw(st.sampled_from([*JoinKind]))
    join = MovingJoin(
        *(sides[0], sides[1], ((AttributeRef(on[0]), AttributeRef(on[1])),)),
        *(draw(st.none() | st.just(more)), kind, draw(st.booleans())),
    )
    other = AttributeRef("b.price" if kind.shows_right else "a.price")
    return pair(join, AttributeRef("a.key"), draw(st.sampled_from([other, AttributeRef("a.key")])))


def computed(_draw: st.DrawFn, rows: Node) -> Node:
    return pair(rows, KEY, Call("+", (PRICE, ONE)))


def relation(draw: st.DrawFn, streams: str, depth: int) -> Node:
    """A relation of these streams, and of others below it."""
    if depth == 0:
        return window(draw, streams[0])
    steps: list[Callable[[st.DrawFn, Node], Node]] = [groups, groups, first_ones, computed]
    if len(streams) > 1 and draw(st.booleans()):
        left = relation(draw, streams[:1], draw(st.integers(0, depth)))
        right = relation(draw, streams[1:], draw(st.integers(0, depth)))
        if draw(st.booleans()):
            return joined(draw, left, right)
        return Union((left, right))
    return draw(st.sampled_from(steps))(draw, relation(draw, streams, depth - 1))


def is_right(node: Node) -> bool:
    """Whether the language has such a relation. A random order of operators may be none."""
    try:
        analyse_node(ToStream(node, Change.ISTREAM))
    except InvalidInput:
        return False
    return True


@st.composite
def nested(draw: st.DrawFn) -> Node:
    """A relation with groups, or an order, below something else."""
    made = relation(draw, draw(st.sampled_from(["a", "ab", "aa", "abc"])), draw(st.integers(2, 4)))
    assume(is_right(made))
    return made


@st.composite
def neighbours(draw: st.DrawFn) -> Node:
    """Groups with the values of the groups beside them."""
    order = (OrderKey(PRICE, draw(st.booleans())), OrderKey(KEY))
    beside = (Neighbour("before", PRICE, draw(st.sampled_from([1, 2, -1]))),)
    made = Ranked(groups(draw, window(draw, "a")), (), order, None, None, beside)
    assume(is_right(made))
    return made


@pytest.mark.parametrize("change", [each for each in Change if each is not Change.UPSERT])
@pytest.mark.parametrize("roots", [nested(), neighbours()], ids=["nested", "neighbours"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=ROWS, data=st.data())
def test_an_engine_gives_what_each_instant_from_scratch_gives(
    change: Change,
    roots: st.SearchStrategy[Node],
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    check(data.draw(roots), change, rows, data)


@st.composite
def keyed(draw: st.DrawFn) -> Node:
    """A relation that has a key, with the key among what is shown."""
    kind = draw(st.sampled_from(["groups", "having", "first", "join", "outer", "looked up"]))
    below = relation(draw, "a", draw(st.integers(1, 2)))
    if kind in ("groups", "having", "first"):
        summed: Node = Aggregate(below, (Column("own", KEY),), AGGREGATIONS)
        if kind == "having":
            summed = Filter(summed, Call(">", (AttributeRef("n"), ONE)))
        if kind == "first":
            order = (
                OrderKey(AttributeRef("total"), draw(st.booleans())),
                OrderKey(AttributeRef("own")),
            )
            number = draw(st.none() | st.just("rn"))
            summed = Ranked(summed, (), order, draw(st.integers(2, 3)), number)
        return summed
    sides = []
    for alias, rows in (("a", below), ("b", window(draw, "b"))):
        made = Aggregate(
            rows, (Column(f"{alias}.own", KEY),), (Aggregation(f"{alias}.n", "count", None),)
        )
        sides.append(made)
    kinds = {
        "join": JoinKind.INNER,
        "outer": draw(st.sampled_from([JoinKind.LEFT, JoinKind.RIGHT])),
    }
    right = "b.own" if kind == "looked up" else draw(st.sampled_from(["b.own", "b.n"]))
    equal = ((AttributeRef("a.own" if kind != "join" else "a.n"), AttributeRef(right)),)
    return MovingJoin(sides[0], sides[1], equal, None, kinds.get(kind, JoinKind.LEFT))


@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=ROWS, root=keyed(), data=st.data())
def test_what_has_a_key_gives_upserts_and_deletions(
    rows: tuple[list[Given], list[Given], list[Given]], root: Node, data: st.DataObject
) -> None:
    assume(is_right(root))
    check(root, Change.UPSERT, rows, data)


@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=ROWS, root=keyed(), at=st.integers(-1, 20))
def test_the_rows_that_stand_are_the_newest_of_each_key(
    rows: tuple[list[Given], list[Given], list[Given]], root: Node, at: int
) -> None:
    assume(is_right(root))
    check_standing(root, rows, at)


def at_each_instant(
    root: Node, tables: dict[str, list[Tuple]]
) -> Callable[[Value], Counter[tuple[Value, ...]]]:
    """The rows that a relation holds at an instant."""
    signed = [
        (each.values, 1 if change is Change.ISTREAM else -1)
        for change in (Change.ISTREAM, Change.DSTREAM)
        for each in run(ToStream(root, change), tables, lambda relation: REACH[relation.name])
    ]

    def rows(instant: Value) -> Counter[tuple[Value, ...]]:
        held: Counter[tuple[Value, ...]] = Counter()
        for values, sign in signed:
            if values[0] <= instant:  # type: ignore[operator]
                held[values[1:]] += sign
        return held

    return rows


@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=ROWS, root=nested(), hidden=st.sets(st.integers(0, 17), min_size=1))
def test_what_somebody_sees_stands_in_what_follows_from_the_tuples_that_it_may_see(
    rows: tuple[list[Given], list[Given], list[Given]], root: Node, hidden: set[int]
) -> None:
    """So a tuple that is hidden changes no row that is sent to those who may not see it."""
    # Of windows of rows, catalog/SPEC.md says what an absence tells.
    assume(all(not isinstance(n, Moving) or n.window.rows is None for n in walk(root)))
    clearance = Label.of(*({*range(18)} - hidden))

    def sees(each: Tuple) -> bool:
        return each.label is not None and each.label.within(clearance)

    tables = {
        name: table(several, 6 * number)
        for number, (name, several) in enumerate(zip("abc", rows, strict=True))
    }
    seen = {name: [e for e in t if sees(e)] for name, t in tables.items()}
    stands = at_each_instant(root, seen)
    for each in run(ToStream(root, Change.ISTREAM), tables, lambda relation: REACH[relation.name]):
        if sees(each):
            assert stands(each.values[0])[each.values[1:]] > 0


def counts(window_: MovingWindow) -> Aggregate:
    moving = Moving(Source(STREAMS["a"]), window_)
    return Aggregate(moving, (Column("key", KEY),), (Aggregation("n", "count", None),))


@pytest.mark.parametrize(
    ("node", "loose"),
    [
        (
            Aggregate(counts(MovingWindow()), (Column("k", AttributeRef("n")),), AGGREGATIONS[:1]),
            True,
        ),
        (Aggregate(counts(MovingWindow()), (Column("k", KEY),), AGGREGATIONS[:1]), False),
        (Aggregate(counts(MovingWindow()), (), AGGREGATIONS[:1]), False),
        (
            Aggregate(
                Filter(counts(MovingWindow()), Call(">", (AttributeRef("n"), ONE))),
                (),
                AGGREGATIONS[:1],
            ),
            True,
        ),
        (Aggregate(counts(MovingWindow()), (Column("n", AttributeRef("n")),), ()), False),
        (Ranked(counts(MovingWindow()), (), (OrderKey(AttributeRef("n")),), 3), True),
        (Ranked(counts(MovingWindow()), (), (OrderKey(KEY),), 3), False),
    ],
)
def test_a_row_depends_on_others_where_what_changes_says_where_a_row_is(
    node: Node, loose: bool
) -> None:
    assert depends_on_others(analyse_node(node)) is loose


def arrival(time: int, row: str) -> Arrival:
    return Arrival(time, f"{time}", (1,), "", True, row, "")


def test_totals_below_others_are_kept_without_their_tuples() -> None:
    root = Aggregate(counts(MovingWindow()), (), (Aggregation("keys", "count", None),))
    moving = engine(root, Change.ISTREAM)
    moving.take([arrival(1, "7"), arrival(2, "7"), arrival(3, "8")])
    assert [each.row for each in moving.until(9)] == ["1", "2"]
    assert sum(content.size for content in moving.contents) == 0
    stored = moving.to_text()
    moving = engine(root, Change.ISTREAM)
    moving.restore(stored)
    moving.take([arrival(10, "9"), arrival(11, "7")])
    assert [each.row for each in moving.until(19)] == ["3"]


def test_a_row_that_would_make_too_many_pairs_is_left_out_until_it_changes() -> None:
    sides = [
        Project(counts(MovingWindow(range_ms=3)), (Column(f"{a}.n", AttributeRef("n")),))
        for a in "ab"
    ]
    root = MovingJoin(sides[0], sides[1], ((AttributeRef("a.n"), AttributeRef("b.n")),))
    moving = engine(root, Change.ISTREAM)
    moving.rows.root.held.limits = HeldLimits(2, 100)  # type: ignore[attr-defined]
    for number in (0, 1):
        moving.take([arrival(1, "7"), arrival(2, "8")], number)
    rows = [each.row for each in moving.until(5)]
    assert rows == [SEPARATOR.join("11")] * 2
    assert moving.withheld == 1
    # Their windows are empty, so there is room again.
    for number in (0, 1):
        moving.take([arrival(9_000, "7")], number)
    assert [each.instant for each in moving.until(9_000)] == [9_000]
    assert moving.withheld == 1


def test_rows_below_that_are_too_long_are_left_out_until_they_change() -> None:
    inner = Filter(counts(MovingWindow(range_ms=3)), Call(">=", (AttributeRef("n"), ONE)))
    moving = engine(inner, Change.ISTREAM)
    (below,) = (side for _, side in moving.root.below())
    # A key has one character, and a row three.
    below.most = 4
    moving.take([arrival(1, "7"), arrival(2, "8")])
    assert [each.row for each in moving.until(5)] == [SEPARATOR.join("71")]
    assert moving.withheld == 1
    moving.take([arrival(9_000, "8")])
    assert [each.row for each in moving.until(9_000)] == [SEPARATOR.join("81")]
    assert moving.withheld == 1


def test_groups_of_groups_without_an_end_are_usually_upserts() -> None:
    inner = counts(MovingWindow())
    root = Aggregate(inner, (Column("n", AttributeRef("n")),), (Aggregation("m", "count", None),))
    assert usually_upserts(root)
    assert keys_of(root) == ("n",)
    assert not usually_upserts(
        Aggregate(counts(MovingWindow(rows=3)), root.keys, root.aggregations)
    )
