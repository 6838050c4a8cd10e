"""Which plans of moving windows are right, and what is known of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.analysis import analyse, analyse_node
from catalog.changing_parts import ChangingParts
from catalog.checked_plan import StateKind
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Expression
from catalog.moving_check import MAX_RELATIONS, NOW
from catalog.pair_expressions import MAX_PAIR_PARTS, RowExpressions
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    Join,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    OrderKey,
    Plan,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Union,
)
from catalog.schema import Schema
from tests.plans import grouped, updating
from tests.unit.catalog.plans import (
    COUNT,
    MINUTE,
    ONE,
    OTHER,
    SOURCE,
    WINDOWED,
    B,
    D,
    N,
    S,
    T,
    call,
    column,
    ref,
    relation,
    schema,
)

NEWEST = MovingWindow(rows=3)
EU = Source(relation("eu", schema(at=T, town=S, price=D, size=N, big=B), bit=3))


def side(alias: str, source: Source) -> Node:
    """A moving window whose attributes have the alias before their names."""
    names = source.relation.schema.names
    return Project(
        Moving(source, NEWEST), tuple(Column(f"{alias}.{name}", ref(name)) for name in names)
    )


LEFT, RIGHT = side("a", SOURCE), side("b", EU)
EQUAL = ((ref("a.symbol"), ref("b.town")),)
PAIRS = MovingJoin(LEFT, RIGHT, EQUAL)


def qualified(alias: str) -> Node:
    """A stream with the attributes of `side`."""
    names = SOURCE.relation.schema.names
    return Project(SOURCE, tuple(Column(f"{alias}.{name}", ref(name)) for name in names))


def chain_of(windows: int) -> Node:
    """A join of so many windows."""
    joined: Node = side("w0", SOURCE)
    for number in range(1, windows):
        equal = ((ref("w0.size"), ref(f"w{number}.size")),)
        joined = MovingJoin(joined, side(f"w{number}", EU), equal)
    return joined


def stream(node: Node) -> ToStream:
    return ToStream(node, Change.ISTREAM)


def shown(expression: Expression) -> ToStream:
    return stream(Project(PAIRS, (Column("x", expression),)))


def many(parts: int) -> Expression:
    return call("+", *(ref("a.size"), ref("b.size") if parts < 3 else many(parts - 2)))


def many_counts(parts: int) -> Expression:
    return call("+", *(ref("n"), ref("n") if parts < 3 else many_counts(parts - 2)))


def groups_below_each_other(number: int) -> Node:
    """So many groups of the groups below."""
    made: Node = side("a", SOURCE)
    key: str = "a.size"
    for each in range(number):
        made = Aggregate(made, (Column(f"k{each}", ref(key)),), (COUNT,))
        key = f"k{each}"
    return made


def different(name: str) -> Aggregation:
    return Aggregation(f"of_{name}", "count_distinct", ref(name))


WRONG: dict[str, tuple[Node, str]] = {
    "a join of a relation and a stream": (MovingJoin(LEFT, OTHER, EQUAL), "right side.*a stream"),
    "a join of a stream and a relation": (MovingJoin(OTHER, RIGHT, EQUAL), "left side.*a stream"),
    "a join of two streams": (MovingJoin(SOURCE, OTHER, EQUAL), "goes over a moving window"),
    "an interval join of relations": (Join(LEFT, RIGHT, EQUAL, 0, 1), "a relation, which is no"),
    "a join that compares nothing": (MovingJoin(LEFT, RIGHT, ()), "at least one attribute"),
    "a join of two types": (
        MovingJoin(LEFT, RIGHT, ((ref("a.symbol"), ref("b.size")),)),
        "a.symbol is a string, b.size a bigint",
    ),
    "a join of equal names": (MovingJoin(LEFT, LEFT, ((ref("a.size"),) * 2,)), "twice"),
    "a condition that is a number": (
        MovingJoin(LEFT, RIGHT, EQUAL, ref("a.size")),
        "true or false",
    ),
    "a join of nine": (chain_of(9), "at most 8 moving windows"),
    "a join that compares what two windows make together": (
        stream(
            MovingJoin(
                Project(PAIRS, (Column("both", call("+", ref("a.size"), ref("b.size"))),)),
                side("c", EU),
                ((ref("both"), ref("c.size")),),
            )
        ),
        "compares values of single windows: 'both'",
    ),
    "a text of a side that may be absent in upper case": (
        stream(
            Project(
                replace(PAIRS, kind=JoinKind.LEFT), (Column("x", call("upper", ref("b.town"))),)
            )
        ),
        "UPPER takes attributes of a side that is always there only",
    ),
    "the right side of a semi join": (
        stream(Project(replace(PAIRS, kind=JoinKind.SEMI), (Column("x", ref("b.town")),))),
        "unknown attribute 'b.town'",
    ),
    "a union of a relation and a stream": (Union((LEFT, qualified("a"))), "one side.*is a stream"),
    "a union of joins": (Union((PAIRS, PAIRS)), "over single moving windows"),
    "a join of a union": (MovingJoin(Union((LEFT, LEFT)), RIGHT, EQUAL), "joined with nothing"),
    "a union of a union": (Union((Union((LEFT, LEFT)), LEFT)), "in no other UNION"),
    "a function of many values over groups": (
        stream(
            Project(
                Aggregate(LEFT, (column("a.symbol"),), (COUNT,)),
                (Column("x", call("upper", ref("a.symbol"))),),
            )
        ),
        "UPPER does not go over groups",
    ),
    "too much for each group": (
        stream(Project(Aggregate(LEFT, (), (COUNT,)), (Column("x", many_counts(MAX_PAIR_PARTS)),))),
        "at most 200 parts",
    ),
    "rows of DISTINCT in an order": (
        Ranked(Aggregate(LEFT, (column("a.symbol"),), ()), (), (OrderKey(ref("a.symbol")),), 1),
        "rows of DISTINCT have no places",
    ),
    "too many groups below each other": (
        stream(groups_below_each_other(MAX_RELATIONS + 2)),
        "at most 8 groups",
    ),
    "a text of both sides in upper case": (
        shown(call("upper", call("concat", ref("a.symbol"), ref("b.town")))),
        "UPPER takes attributes of one side",
    ),
    "a text of both sides in a condition": (
        stream(Filter(PAIRS, call("starts_with", ref("a.symbol"), ref("b.town")))),
        "STARTS_WITH takes attributes of one side",
    ),
    "a text of both sides in a group": (
        stream(Aggregate(PAIRS, (Column("k", call("%", ref("a.size"), ref("b.size"))),), (COUNT,))),
        "% takes attributes of one side",
    ),
    "too much for each pair": (shown(many(MAX_PAIR_PARTS)), "has at most 200 parts"),
    "a partition without rows": (
        Moving(SOURCE, MovingWindow(partition=(ref("symbol"),))),
        "PARTITION BY goes with ROWS",
    ),
    "rows and a range": (Moving(SOURCE, MovingWindow(1, 1)), "a range or a number of rows"),
    "groups of nothing": (Aggregate(LEFT, (), ()), "names results"),
    "different values of a session": (
        grouped(SOURCE, SessionWindow(1_000), (), (different("size"),)),
        "a session that never ends: use TUMBLE or HOP",
    ),
    "a session without a gap": (
        grouped(SOURCE, SessionWindow(0), (), (COUNT,)),
        "the gap of a session window is 1 ms",
    ),
}


@pytest.mark.parametrize(("node", "reason"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_plan_is_refused(node: Node, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        analyse_node(node)


def test_a_relation_is_no_result() -> None:
    with pytest.raises(InvalidInput, match="say with ISTREAM"):
        analyse(Plan(PAIRS))


def test_a_tuple_is_in_a_group_for_each_different_value_too() -> None:
    counted = grouped(SOURCE, MINUTE, (), (COUNT, different("size")))
    assert analyse(Plan(counted)).copies == 2
    several = (COUNT, different("size"), different("price"))
    assert analyse(Plan(grouped(SOURCE, MINUTE, (), several))).copies == 3
    assert analyse(updating(counted)).copies == 2


def test_the_stream_of_pairs_has_the_instant_and_the_attributes_of_both() -> None:
    checked = analyse_node(stream(PAIRS))
    assert checked.schema.names == (
        "instant",
        *(f"a.{name}" for name in SOURCE.relation.schema.names),
        *(f"b.{name}" for name in EU.relation.schema.names),
    )
    assert checked.event_time == "instant"
    assert checked.keeps_state
    states = [each.state for each in checked.walk()]
    assert states.count(StateKind.MOVING) == 2


def test_what_reads_one_side_is_computed_below_the_join() -> None:
    long = call("length", ref("a.symbol"))
    condition = call(">", call("+", long, ref("b.size")), ONE)
    root = Project(Filter(PAIRS, condition), (Column("x", call("-", long, ref("b.size"))),))
    parts = ChangingParts.of(analyse_node(root))
    assert parts.join is not None
    found = RowExpressions(parts, parts.join)
    assert found.values.values(0) == (long,)
    assert found.values.values(1) == (ref("b.size"),)
    left, right = AttributeRef("0.0"), AttributeRef("1.0")
    assert found.rules.filters == (call(">", call("+", left, right), ONE),)
    assert found.shown == (call("-", left, right),)
    assert found.values.schema() == schema_of_sides()


def schema_of_sides() -> Schema:
    return Schema(schema(**{"0.0": N, "1.0": N}).attributes)


def test_a_side_that_may_be_absent_requires_no_attribute() -> None:
    required = {
        kind: {
            a.name for a in analyse_node(replace(PAIRS, kind=kind)).schema.attributes if a.required
        }
        for kind in JoinKind
    }
    both, left, right = {"a.at", "b.at"}, {"a.at"}, {"b.at"}
    assert required[JoinKind.INNER] == both
    assert required[JoinKind.LEFT] == required[JoinKind.SEMI] == required[JoinKind.ANTI] == left
    assert required[JoinKind.RIGHT] == right
    assert required[JoinKind.FULL] == set()


def test_eight_windows_are_joined() -> None:
    assert len(ChangingParts.of(analyse_node(chain_of(8))).windows()) == 8


OF_WINDOWS = Moving(WINDOWED, NOW)
BY_COUNT = (OrderKey(ref("n")),)


def first_of(rows: Node, change: Change = Change.RSTREAM) -> ToStream:
    """The first ones of each window's results."""
    return ToStream(Ranked(rows, (ref(WINDOW_END),), BY_COUNT, 3, "rn"), change)


def test_an_order_goes_over_the_results_of_one_window() -> None:
    """A condition is about the relation, or leaves out whole windows."""
    condition = call(">", ref("n"), ONE)
    since = Filter(WINDOWED, call("=", ref(WINDOW_START), ref(WINDOW_END)))
    for rows in (OF_WINDOWS, Filter(OF_WINDOWS, condition), Moving(since, NOW)):
        found = analyse_node(first_of(rows))
        assert found.event_time == "instant"
        assert {each.state for each in found.walk()} >= {StateKind.GROUPS, StateKind.MOVING}


_SESSIONS = grouped(SOURCE, SessionWindow(1_000), (column("symbol"),), (COUNT,))


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        *((first_of(OF_WINDOWS, each), "sent whole") for each in Change if each != Change.RSTREAM),
        (ToStream(OF_WINDOWS, Change.RSTREAM), "goes over streams"),
        (first_of(Moving(_SESSIONS, NOW)), "goes over streams"),
        (first_of(Moving(WINDOWED, MovingWindow())), "goes over streams"),
        (first_of(Moving(Filter(WINDOWED, call(">", ref("n"), ONE)), NOW)), "goes over streams"),
        (Union((OF_WINDOWS, OF_WINDOWS)), "joined and united with nothing"),
        (
            MovingJoin(OF_WINDOWS, side("a", SOURCE), ((ref("symbol"), ref("a.symbol")),)),
            "joined and united with nothing",
        ),
    ],
)
def test_nothing_else_goes_over_the_results_of_windows(node: Node, reason: str) -> None:
    """What a hidden tuple changes in one result would show in the places of others."""
    with pytest.raises(InvalidInput, match=reason):
        analyse_node(node)
