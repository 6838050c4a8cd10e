"""What flows along a plan's edges, and each refusal of a plan."""

import pytest

from catalog.errors import InvalidInput, Position
from catalog.expression import MAX_DEPTH as EXPRESSION_DEPTH
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Join,
    Plan,
    Project,
    Source,
    Union,
    Window,
    is_stateful,
    sources,
    walk,
)
from catalog.plan_check import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_OVERLAP,
    MAX_WINDOW_MS,
    check_plan,
    event_time,
    is_public,
    lateness_ms,
    lowers,
    output_schema,
    reach,
)
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.schema import MAX_ATTRIBUTES, Attribute, Schema, Type

B, N, D, S, T = Type.BOOLEAN, Type.BIGINT, Type.DOUBLE, Type.STRING, Type.TIMESTAMP
PLACE = Position(3, 7)


def schema(**types: Type) -> Schema:
    return Schema(tuple(Attribute(name, kind, name == "at") for name, kind in types.items()))


def relation(  # noqa: PLR0917 - a row of a table
    name: str = "in1",
    types: Schema | None = None,
    at: str | None = "at",
    bit: int = 0,
    lateness: int = 0,
    public: bool = False,
    declared: DeclaredAggregate | None = None,
) -> Relation:
    own = types or schema(at=T, symbol=S, price=D, size=N, big=B)
    reaches = Label.of(bit)
    kind = RelationKind.STREAM
    return Relation(1 + bit, name, kind, own, at, lateness, reaches, public, declared)


def ref(name: str) -> AttributeRef:
    return AttributeRef(name, PLACE)


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, PLACE)


def column(name: str) -> Column:
    return Column(name, ref(name))


SOURCE = Source(relation())
OTHER = Source(relation("in2", schema(when=T, name=S, amount=N), "when", bit=1, lateness=5))
TIMELESS = Source(relation("in3", schema(symbol=S), None, bit=2))
ONE = Literal(1, N, PLACE)
COUNT = Aggregation("n", "count", None)
MINUTE = Window(60_000, 60_000)
WINDOWED = Aggregate(SOURCE, MINUTE, (column("symbol"),), (COUNT,))
JOINED = Join(SOURCE, OTHER, ((ref("symbol"), ref("name")),), -1_000, 1_000)


def aggregated(function: str, argument: Expression | None) -> Aggregate:
    return Aggregate(SOURCE, MINUTE, (), (Aggregation("x", function, argument),))


def windowed(size: int, slide: int) -> Aggregate:
    return Aggregate(SOURCE, Window(size, slide), (), (COUNT,))


def filtered(condition: Expression) -> Filter:
    return Filter(SOURCE, condition)


def computed(expression: Expression) -> Project:
    return Project(SOURCE, (Column("x", expression),))


def deep(nodes: int) -> Plan:
    plan: Plan = SOURCE
    for _ in range(nodes):
        plan = Filter(plan, ref("big"))
    return plan


def unfolding(doublings: int) -> Plan:
    plan: Plan = SOURCE
    for _ in range(doublings):
        plan = Union((plan, plan))
    return plan


def nested(calls: int) -> Expression:
    expression: Expression = ref("big")
    for _ in range(calls):
        expression = call("not", expression)
    return expression


def wide(attributes: int) -> Plan:
    return Project(SOURCE, tuple(Column(f"c{i}", ref("size")) for i in range(attributes)))


def joined(**changed: object) -> Join:
    own = {"left": SOURCE, "right": OTHER, "equal": JOINED.equal, "lower_ms": 0, "upper_ms": 0}
    return Join(**{**own, **changed})  # type: ignore[arg-type]


REFUSED: dict[str, tuple[Plan, str]] = {
    "too many boxes": (deep(MAX_NODES), "at most 1000 boxes"),
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
    "a name twice": (Project(SOURCE, (column("price"), column("price"))), "stands twice"),
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
    "a window over a window": (
        Aggregate(WINDOWED, MINUTE, (), (COUNT,)),
        "one window or join",
    ),
    "a window over a join": (Aggregate(JOINED, MINUTE, (), (COUNT,)), "one window or join"),
    "a join over a window": (joined(left=WINDOWED), "one window or join"),
    "a window over a filtered window": (
        Aggregate(Filter(WINDOWED, call("is_null", ref("n"))), MINUTE, (), (COUNT,)),
        "one window or join",
    ),
    "a window without event time": (
        Aggregate(TIMELESS, MINUTE, (), (COUNT,)),
        "a window goes by event time",
    ),
    "a window whose event time was projected away": (
        Aggregate(Project(SOURCE, (column("price"),)), MINUTE, (), (COUNT,)),
        "a window goes by event time",
    ),
    "a window over a computed time": (
        Aggregate(
            Project(SOURCE, (Column("at", call("coalesce", ref("at"), ref("at"))),)),
            MINUTE,
            (),
            (COUNT,),
        ),
        "a window goes by event time",
    ),
    "a window over a union of other event times": (
        Aggregate(
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
    "an empty window": (windowed(0, 0), "1 ms to 400 days"),
    "a negative slide": (windowed(10, -5), "1 ms to 400 days"),
    "a window with gaps": (windowed(10, 20), "1 ms to 400 days"),
    "a window of years": (windowed(MAX_WINDOW_MS + 1, MAX_WINDOW_MS + 1), "1 ms to 400 days"),
    "a slide that does not divide": (windowed(10, 3), "multiple of its slide"),
    "too much overlap": (windowed(MAX_OVERLAP + 1, 1), "at most 1000 times"),
    "an aggregate of nothing": (Aggregate(SOURCE, MINUTE, (), ()), "at least one function"),
    "an unknown aggregate": (aggregated("collect_list", ref("size")), "unknown aggregate"),
    "an aggregate without its argument": (aggregated("sum", None), "sum needs an argument"),
    "an aggregate of the wrong type": (aggregated("sum", ref("symbol")), "sum does not take"),
    "a minimum of conditions": (aggregated("min", ref("big")), "min does not take"),
    "a key named as a window's edge": (
        Aggregate(SOURCE, MINUTE, (Column("window_end", ref("symbol")),), (COUNT,)),
        "stands twice",
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
def test_a_plan_is_refused_with_words(plan: Plan, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        check_plan(plan)
    assert refusal.value.status == 422


@pytest.mark.parametrize(
    "name", ["an unknown attribute", "too few arguments", "a condition that is a number"]
)
def test_a_refusal_names_the_place_in_the_text(name: str) -> None:
    with pytest.raises(InvalidInput, match="line 3, column 7") as refusal:
        check_plan(REFUSED[name][0])
    assert refusal.value.position == PLACE


ACCEPTED: dict[str, tuple[Plan, str]] = {
    "source": (SOURCE, "at timestamp!, symbol string, price double, size bigint, big boolean"),
    "filter": (Filter(TIMELESS, call("is_null", ref("symbol"))), "symbol string"),
    "project": (
        Project(SOURCE, (Column("t", ref("at")), Column("x", call("/", ref("size"), ONE)))),
        "t timestamp!, x double",
    ),
    "union": (
        Union((Source(relation("a", schema(at=T))), Source(relation("b", schema(at=T), bit=1)))),
        "at timestamp!",
    ),
    "window": (
        WINDOWED,
        "window_start timestamp!, window_end timestamp!, symbol string, n bigint!",
    ),
    "join": (
        JOINED,
        (
            "at timestamp!, symbol string, price double, size bigint, big boolean, "
            "when timestamp, name string, amount bigint"
        ),
    ),
    "filter over a window": (
        Filter(WINDOWED, call(">", ref("n"), ONE)),
        "window_start timestamp!, window_end timestamp!, symbol string, n bigint!",
    ),
    "average": (
        aggregated("avg", ref("size")),
        "window_start timestamp!, window_end timestamp!, x double",
    ),
}


@pytest.mark.parametrize(("plan", "text"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_plan_has_its_schema(plan: Plan, text: str) -> None:
    found = check_plan(plan).attributes
    assert ", ".join(f"{a.name} {a.type}{'!' * a.required}" for a in found) == text


def test_a_plan_and_an_expression_may_be_deep() -> None:
    assert check_plan(deep(MAX_DEPTH - 1)) == SOURCE.relation.schema
    assert check_plan(filtered(nested(EXPRESSION_DEPTH - 1))) == SOURCE.relation.schema


def test_a_union_requires_what_all_its_inputs_require() -> None:
    loose = Schema((Attribute("at", T),))
    union = Union((Source(relation("a", schema(at=T))), Source(relation("b", loose, bit=1))))
    assert output_schema(union).attributes == (Attribute("at", T, required=False),)


EVENT_TIMES: dict[str, tuple[Plan, str | None]] = {
    "source": (SOURCE, "at"),
    "none": (TIMELESS, None),
    "filter": (filtered(ref("big")), "at"),
    "renamed": (Project(SOURCE, (Column("t", ref("at")),)), "t"),
    "projected away": (Project(SOURCE, (column("price"),)), None),
    "window": (WINDOWED, "window_end"),
    "join": (JOINED, "at"),
}


@pytest.mark.parametrize(("plan", "name"), EVENT_TIMES.values(), ids=EVENT_TIMES.keys())
def test_event_time_along_a_plan(plan: Plan, name: str | None) -> None:
    assert event_time(plan) == name


def test_the_reach_is_the_union_of_all_that_is_read() -> None:
    union = Union((TIMELESS, Project(JOINED, (column("symbol"),))))
    assert reach(union) == Label.of(0, 1, 2)
    assert [found.name for found in sources(union)] == ["in3", "in1", "in2"]
    assert lateness_ms(union) == 5
    assert is_stateful(union)
    assert not is_stateful(TIMELESS)
    assert len(list(walk(union))) == 6


def test_public_is_what_reads_a_public_relation() -> None:
    public = Source(relation("p", schema(symbol=S), None, bit=9, public=True))
    assert not is_public(TIMELESS)
    assert is_public(Union((TIMELESS, public)))


DECLARED = DeclaredAggregate(60_000, ("symbol",), ("count", "avg"), 5, source=0, aggregated=7)
DECLARING = Source(relation(declared=DECLARED))
AVERAGE = Aggregation("m", "avg", ref("price"))
FITS = Aggregate(DECLARING, MINUTE, (column("symbol"),), (COUNT, AVERAGE))


NOT_LOWERED: dict[str, Plan] = {
    "nothing declared": WINDOWED,
    "no aggregate": DECLARING,
    "a filter before it": Aggregate(
        Filter(DECLARING, ref("big")), MINUTE, FITS.keys, FITS.aggregations
    ),
    "a projection before it": Aggregate(
        Project(DECLARING, (column("at"), column("symbol"))), MINUTE, FITS.keys, (COUNT,)
    ),
    "a union before it": Aggregate(
        Union((DECLARING, DECLARING)), MINUTE, FITS.keys, FITS.aggregations
    ),
    "another window": Aggregate(DECLARING, Window(120_000, 120_000), FITS.keys, (COUNT,)),
    "a hopping window": Aggregate(DECLARING, Window(60_000, 30_000), FITS.keys, (COUNT,)),
    "no key": Aggregate(DECLARING, MINUTE, (), (COUNT,)),
    "another key": Aggregate(DECLARING, MINUTE, (column("size"),), (COUNT,)),
    "one key more": Aggregate(DECLARING, MINUTE, (column("symbol"), column("size")), (COUNT,)),
    "a computed key more": Aggregate(
        DECLARING, MINUTE, (column("symbol"), Column("k", call("abs", ref("size")))), (COUNT,)
    ),
    "a computed key": Aggregate(
        DECLARING, MINUTE, (Column("symbol", call("upper", ref("symbol"))),), (COUNT,)
    ),
    "another function": Aggregate(
        DECLARING, MINUTE, FITS.keys, (COUNT, Aggregation("s", "sum", ref("price")))
    ),
    "a computed argument": Aggregate(
        DECLARING,
        MINUTE,
        FITS.keys,
        (Aggregation("m", "avg", call("case", ref("big"), ref("price"), ref("price"))),),
    ),
}


def test_the_declared_aggregate_adds_its_category_to_the_reach() -> None:
    assert lowers(FITS) == DECLARED
    assert reach(FITS) == Label.of(0, 7)
    renamed = Aggregate(DECLARING, MINUTE, (Column("k", ref("symbol")),), (COUNT,))
    assert lowers(renamed) == DECLARED


@pytest.mark.parametrize("plan", NOT_LOWERED.values(), ids=NOT_LOWERED.keys())
def test_no_other_aggregate_lowers(plan: Plan) -> None:
    assert lowers(plan) is None
    assert reach(plan) == Label.of(0)
