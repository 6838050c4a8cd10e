"""Each refusal of a plan."""

from dataclasses import replace

import pytest

from catalog.errors import InvalidInput
from catalog.expression import MAX_DEPTH as EXPRESSION_DEPTH
from catalog.expression import Literal
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Enough,
    Filter,
    Moving,
    MovingWindow,
    Node,
    Plan,
    Project,
    Source,
    ToStream,
    Union,
    Windowed,
)
from catalog.plan_check import MAX_DEPTH, MAX_JOINS, MAX_NODES, MAX_OVERLAP
from catalog.plan_rules import MAX_WINDOW_MS
from catalog.relation import RelationKind
from catalog.schema import MAX_ATTRIBUTES
from tests.plans import checked, grouped, updating
from tests.unit.catalog.plans import (
    COUNT,
    JOINED,
    MINUTE,
    ONE,
    OTHER,
    PLACE,
    SOURCE,
    TIMELESS,
    WINDOWED,
    D,
    N,
    S,
    T,
    aggregated,
    call,
    column,
    computed,
    deep,
    filtered,
    joined,
    nested,
    ref,
    relation,
    schema,
    unfolding,
    wide,
    windowed,
)

MOVED = ToStream(Moving(SOURCE, MovingWindow(rows=5)), Change.ISTREAM)


def chained(joins: int) -> Node:
    """So many joins, one over the other."""
    plan: Node = SOURCE
    for number in range(joins):
        names = {name: f"{name}{number}" for name in OTHER.relation.schema.names}
        other = Project(OTHER, tuple(Column(new, ref(name)) for name, new in names.items()))
        plan = joined(left=plan, right=other, equal=((ref("symbol"), ref(names["name"])),))
    return plan


REFUSED: dict[str, tuple[Node | Plan, str]] = {
    "too many boxes": (Union((SOURCE,) * MAX_NODES), "at most 1000 boxes"),
    "too many boxes in a row": (deep(MAX_DEPTH), "at most 200 boxes in a row"),
    "boxes that unfold without end": (unfolding(60), "at most 1000 boxes"),
    "an expression too deep": (filtered(nested(EXPRESSION_DEPTH)), "at most 200 calls deep"),
    "too many attributes": (wide(MAX_ATTRIBUTES + 1), "1 to 200 attributes"),
    "no attributes": (Project(SOURCE, ()), "1 to 200 attributes"),
    "a qualified name at the output": (
        Project(SOURCE, (Column("a.price", ref("price")),)),
        "'a.price' is not usable",
    ),
    "an empty name": (Project(SOURCE, (Column("", ref("price")),)), "is not usable"),
    "a name twice": (Project(SOURCE, (column("price"), column("price"))), "is there twice"),
    "an unknown attribute": (filtered(call("=", ref("nope"), ONE)), "unknown attribute 'nope'"),
    "a function outside the allow-list": (
        computed(call("java_method", ref("symbol"))),
        "'java_method' is not in the allow-list",
    ),
    "an aggregate as a plain function": (computed(call("sum", ref("size"))), "not in the allow"),
    "arguments of the wrong type": (computed(call("upper", ref("size"))), "takes a string"),
    "too few arguments": (computed(call("+", ref("size"))), "takes two numbers"),
    "a constant that does not fit": (computed(Literal("x", N, PLACE)), "does not fit the type"),
    "an integer of 65 bits": (computed(Literal(2**63, N, PLACE)), "does not fit the type"),
    "true as a number": (computed(Literal(True, N, PLACE)), "does not fit the type"),
    "infinity": (computed(Literal(float("inf"), D, PLACE)), "does not fit the type"),
    "a field separator": (computed(Literal("a\x1fb", S, PLACE)), "does not fit the type"),
    "the NULL mark": (computed(Literal("\x1e", S, PLACE)), "does not fit the type"),
    "a condition that is a number": (filtered(ref("size")), "a condition is true or false"),
    "a union of one": (Union((SOURCE,)), "at least two inputs"),
    "a union of other names": (Union((SOURCE, OTHER)), "inputs of a union differ"),
    "a union of other types": (
        Union((TIMELESS, Project(SOURCE, (Column("symbol", ref("size")),)))),
        "inputs of a union differ",
    ),
    "a window over a moving window": (
        grouped(MOVED, MINUTE, (), (COUNT,)),
        "a window of time goes over streams, windows of time and joins",
    ),
    "a join over a moving window": (
        joined(left=MOVED, equal=((ref("symbol"), ref("name")),)),
        "a join by time goes over streams, windows of time and joins",
    ),
    "too many joins": (chained(MAX_JOINS + 1), f"at most {MAX_JOINS} joins"),
    "a window without event time": (
        grouped(TIMELESS, MINUTE, (), (COUNT,)),
        "a window goes by event time",
    ),
    "a window whose event time was projected away": (
        grouped(Project(SOURCE, (column("price"),)), MINUTE, (), (COUNT,)),
        "a window goes by event time",
    ),
    "a window over a computed time": (
        grouped(
            Project(SOURCE, (Column("at", call("coalesce", ref("at"), ref("at"))),)),
            MINUTE,
            (),
            (COUNT,),
        ),
        "a window goes by event time",
    ),
    "a window over a union of other event times": (
        grouped(
            Union(
                (
                    Project(SOURCE, (Column("a", ref("at")), Column("b", ref("at")))),
                    Source(relation("in4", schema(a=T, b=T), "b", bit=3)),
                )
            ),
            MINUTE,
            (),
            (COUNT,),
        ),
        "a window goes by event time",
    ),
    "updates beside a join": (
        updating(
            Union((Project(WINDOWED, (column("n"),)), Project(JOINED, (Column("n", ref("size")),))))
        ),
        "and for no join",
    ),
    "updates without a window": (updating(SOURCE), "EMIT UPDATES goes with windows"),
    "updates of a join": (updating(JOINED), "EMIT UPDATES goes with windows"),
    "updates over an output": (
        updating(
            grouped(
                Source(replace(SOURCE.relation, kind=RelationKind.OUTPUT)), MINUTE, (), (COUNT,)
            )
        ),
        "EMIT UPDATES reads streams, and in1 is an output",
    ),
    "windows that nothing reads": (Windowed(SOURCE, MINUTE), "only an aggregate reads windows"),
    "a filter over windows": (
        Filter(Windowed(SOURCE, MINUTE), ref("big")),
        "only an aggregate reads windows",
    ),
    "an aggregate without windows": (Aggregate(SOURCE, (), (COUNT,)), "goes over windows"),
    "an empty window": (windowed(0, 0), "1 ms to 400 days"),
    "a negative slide": (windowed(10, -5), "1 ms to 400 days"),
    "a window with gaps": (windowed(10, 20), "1 ms to 400 days"),
    "a window of years": (windowed(MAX_WINDOW_MS + 1, MAX_WINDOW_MS + 1), "1 ms to 400 days"),
    "an offset as long as the slide": (windowed(10, 5, 5), "from 0 to below its slide"),
    "a negative offset": (windowed(10, 5, -1), "from 0 to below its slide"),
    "a slide that does not divide": (windowed(10, 3), "multiple of its slide"),
    "too much overlap": (windowed(MAX_OVERLAP + 1, 1), "at most 1000 times"),
    "an aggregate of nothing": (grouped(SOURCE, MINUTE, (), ()), "at least one function"),
    "senders of a union": (
        replace(grouped(Union((SOURCE, SOURCE)), MINUTE, (), (COUNT,)), enough=Enough(2)),
        "without join or union",
    ),
    "senders of a moving window": (
        ToStream(
            Aggregate(Moving(SOURCE, MovingWindow()), (), (COUNT,), Enough(2)), Change.ISTREAM
        ),
        "without join or union",
    ),
    "senders of an unknown attribute": (
        replace(grouped(SOURCE, MINUTE, (), (COUNT,)), enough=Enough(2, ("x",))),
        "an attribute that is not there",
    ),
    "an unknown aggregate": (aggregated("median", ref("size")), "unknown aggregate"),
    "an aggregate without its argument": (aggregated("sum", None), "sum needs an argument"),
    "an aggregate of the wrong type": (aggregated("sum", ref("symbol")), "sum does not take"),
    "a minimum of conditions": (aggregated("min", ref("big")), "min does not take"),
    "a key named as a window's edge": (
        grouped(SOURCE, MINUTE, (Column("window_end", ref("symbol")),), (COUNT,)),
        "is there twice",
    ),
    "a join without event time on the left": (
        joined(left=TIMELESS),
        "a join goes by event time",
    ),
    "a join without event time on the right": (
        joined(right=TIMELESS, equal=((ref("price"), ref("symbol")),)),
        "a join goes by event time",
    ),
    "a join that compares nothing": (joined(equal=()), "at least one attribute"),
    "a join of other types": (joined(equal=((ref("price"), ref("name")),)), "price is a double"),
    "a join on an unknown attribute": (joined(equal=((ref("x"), ref("name")),)), "unknown"),
    "a join that goes back": (joined(lower_ms=1, upper_ms=0), "from an earlier to a later"),
    "a join over years": (joined(upper_ms=MAX_WINDOW_MS + 1), "400 days"),
    "a join of equal names": (joined(right=SOURCE, equal=((ref("symbol"),) * 2,)), "twice"),
    "a join on a number": (joined(condition=ref("size")), "a condition is true or false"),
}


@pytest.mark.parametrize(("plan", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_plan_is_refused_with_words(plan: Node | Plan, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        checked(plan)
    assert refusal.value.status == 422


@pytest.mark.parametrize(
    "name", ["an unknown attribute", "too few arguments", "a condition that is a number"]
)
def test_a_refusal_names_the_place_in_the_text(name: str) -> None:
    with pytest.raises(InvalidInput, match="line 3, column 7") as refusal:
        checked(REFUSED[name][0])
    assert refusal.value.position == PLACE


def test_windows_and_joins_go_over_each_other() -> None:
    """Also so many joins as there may be at most."""
    over_window = joined(left=WINDOWED)
    assert checked(over_window).event_time == "window_end"
    assert checked(grouped(JOINED, MINUTE, (), (COUNT,))).event_time == "window_end"
    assert checked(grouped(over_window, MINUTE, (), (Aggregation("m", "count", None),)))
    assert checked(chained(MAX_JOINS)).event_time == "at"
