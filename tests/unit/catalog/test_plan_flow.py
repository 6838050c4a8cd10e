"""What flows along a plan's edges: schemas, event time, reach; which aggregate lowers."""

from dataclasses import replace

import pytest

from catalog.checked_plan import StateKind
from catalog.expression import MAX_DEPTH as EXPRESSION_DEPTH
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Emission,
    Enough,
    Filter,
    Node,
    Plan,
    Project,
    Source,
    Union,
    Window,
    Windowed,
    at_sources,
    is_stateful,
    sources,
    walk,
)
from catalog.plan_check import MAX_DEPTH
from catalog.reach import counted_streams, is_public, lowered_streams, lowers, reach
from catalog.relation import DeclaredAggregate
from catalog.schema import Attribute, Schema
from tests.plans import checked, grouped, updating, whole
from tests.unit.catalog.plans import (
    COUNT,
    JOINED,
    MINUTE,
    ONE,
    OTHER,
    SOURCE,
    TIMELESS,
    UPDATING,
    WINDOWED,
    S,
    T,
    aggregated,
    call,
    column,
    deep,
    filtered,
    nested,
    reach_of,
    ref,
    relation,
    schema,
)

SYMBOL = Column("symbol", ref("name"))
ACCEPTED: dict[str, tuple[Node, str]] = {
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
def test_a_plan_has_its_schema(plan: Node, text: str) -> None:
    found = checked(plan).schema.attributes
    assert ", ".join(f"{a.name} {a.type}{'!' * a.required}" for a in found) == text


def test_a_plan_and_an_expression_may_be_deep() -> None:
    assert checked(deep(MAX_DEPTH - 1)).schema == SOURCE.relation.schema
    assert checked(filtered(nested(EXPRESSION_DEPTH - 1))).schema == SOURCE.relation.schema


def test_a_union_requires_what_all_its_inputs_require() -> None:
    loose = Schema((Attribute("at", T),))
    union = Union((Source(relation("a", schema(at=T))), Source(relation("b", loose, bit=1))))
    assert checked(union).schema.attributes == (Attribute("at", T, required=False),)


EVENT_TIMES: dict[str, tuple[Node, str | None]] = {
    "source": (SOURCE, "at"),
    "none": (TIMELESS, None),
    "filter": (filtered(ref("big")), "at"),
    "renamed": (Project(SOURCE, (Column("t", ref("at")),)), "t"),
    "projected away": (Project(SOURCE, (column("price"),)), None),
    "window": (WINDOWED, "window_end"),
    "join": (JOINED, "at"),
}


@pytest.mark.parametrize(("plan", "name"), EVENT_TIMES.values(), ids=EVENT_TIMES.keys())
def test_event_time_along_a_plan(plan: Node, name: str | None) -> None:
    assert checked(plan).event_time == name


def test_the_reach_is_the_union_of_all_that_is_read() -> None:
    union = whole(Union((TIMELESS, Project(JOINED, (column("symbol"),)))))
    assert reach(union, reach_of) == Label.of(0, 1, 2)
    assert [found.name for found in sources(union)] == ["in3", "in1", "in2"]
    assert is_stateful(union)
    assert not is_stateful(whole(TIMELESS))
    assert len(list(walk(union.root))) == 6


def test_a_plan_is_changed_at_its_sources_and_nowhere_else() -> None:
    plan = updating(Union((Filter(WINDOWED, call(">", ref("n"), ONE)), JOINED, SOURCE)))
    assert at_sources(plan, lambda source: source) == plan
    seen: list[str] = []

    def filtered_source(source: Source) -> Node:
        seen.append(source.relation.name)
        return Filter(source, ref("big"))

    changed = at_sources(plan, filtered_source)
    assert seen == ["in1", "in1", "in2", "in1"]
    assert changed.emission == plan.emission
    assert changed == updating(
        Union(
            (
                Filter(
                    grouped(Filter(SOURCE, ref("big")), MINUTE, WINDOWED.keys, (COUNT,)),
                    call(">", ref("n"), ONE),
                ),
                replace(JOINED, left=Filter(SOURCE, ref("big")), right=Filter(OTHER, ref("big"))),
                Filter(SOURCE, ref("big")),
            )
        )
    )


def test_what_a_plan_keeps_as_state() -> None:
    hopping = grouped(SOURCE, Window(60_000, 20_000), (), (COUNT,))
    both = checked(Union((Project(hopping, (column("n"),)), Project(WINDOWED, (column("n"),)))))
    kinds = [each.state for each in both.root.walk() if each.state is not StateKind.NONE]
    assert (kinds, both.copies) == ([StateKind.GROUPS] * 2, 4)
    assert checked(JOINED).root.state is StateKind.PAIRS
    assert (checked(JOINED).keeps_state, checked(OTHER).keeps_state) == (True, False)


def test_an_update_lags_by_a_window_more() -> None:
    late = grouped(OTHER, MINUTE, (column("name"),), (COUNT,))
    long = grouped(SOURCE, Window(180_000, 60_000), WINDOWED.keys, (COUNT,))
    renamed = Project(late, (*map(column, ("window_start", "window_end")), SYMBOL, column("n")))
    assert checked(UPDATING).delay_ms == 60_000
    assert checked(updating(Union((renamed, WINDOWED)))).delay_ms == 5 + 60_000
    assert checked(updating(Union((long, WINDOWED)))).delay_ms == 180_000
    assert checked(Union((long, WINDOWED))).delay_ms == 0


def test_a_pair_lags_by_the_joins_interval_more() -> None:
    late = replace(JOINED, lower_ms=-3_600_000, upper_ms=-600_000)
    assert checked(late).delay_ms == 5 + 3_000_000
    assert checked(Project(Union((JOINED, late)), (column("at"),))).delay_ms == 5 + 3_000_000
    assert checked(JOINED).delay_ms == 5 + 2_000
    assert checked(grouped(JOINED, MINUTE, (), (COUNT,))).delay_ms == 5 + 2_000
    third = Project(OTHER, (Column("then", ref("when")), Column("third", ref("name"))))
    twice = replace(JOINED, left=JOINED, right=third, equal=((ref("symbol"), ref("third")),))
    assert checked(replace(twice, lower_ms=-300, upper_ms=0)).delay_ms == 5 + 2_000 + 300
    sides = (Project(SOURCE, (column("at"),)), Project(OTHER, (Column("at", ref("when")),)))
    assert checked(Union(sides)).delay_ms == 5


def test_public_is_what_reads_a_public_relation() -> None:
    public = Source(relation("p", schema(symbol=S), None, bit=9, public=True))
    assert not is_public(whole(TIMELESS))
    assert is_public(whole(Union((TIMELESS, public))))


DECLARED = DeclaredAggregate(60_000, ("symbol",), ("count", "avg"), 5, source=0, aggregated=7)
DECLARING = Source(relation(declared=DECLARED))
AVERAGE = Aggregation("m", "avg", ref("price"))
FITS = grouped(DECLARING, MINUTE, (column("symbol"),), (COUNT, AVERAGE))


NOT_LOWERED: dict[str, Node | Plan] = {
    "nothing declared": WINDOWED,
    "no aggregate": DECLARING,
    "a filter before it": grouped(
        Filter(DECLARING, ref("big")), MINUTE, FITS.keys, FITS.aggregations
    ),
    "a projection before it": grouped(
        Project(DECLARING, (column("at"), column("symbol"))), MINUTE, FITS.keys, (COUNT,)
    ),
    "a union before it": grouped(
        Union((DECLARING, DECLARING)), MINUTE, FITS.keys, FITS.aggregations
    ),
    "another window": grouped(DECLARING, Window(120_000, 120_000), FITS.keys, (COUNT,)),
    "a window with an offset": grouped(
        DECLARING, Window(60_000, 60_000, 1_000), FITS.keys, (COUNT,)
    ),
    "a hopping window": grouped(DECLARING, Window(60_000, 30_000), FITS.keys, (COUNT,)),
    "no key": grouped(DECLARING, MINUTE, (), (COUNT,)),
    "updates, which differ by a tuple": updating(FITS),
    "another key": grouped(DECLARING, MINUTE, (column("size"),), (COUNT,)),
    "one key more": grouped(DECLARING, MINUTE, (column("symbol"), column("size")), (COUNT,)),
    "a computed key more": grouped(
        DECLARING, MINUTE, (column("symbol"), Column("k", call("abs", ref("size")))), (COUNT,)
    ),
    "a computed key": grouped(
        DECLARING, MINUTE, (Column("symbol", call("upper", ref("symbol"))),), (COUNT,)
    ),
    "another function": grouped(
        DECLARING, MINUTE, FITS.keys, (COUNT, Aggregation("s", "sum", ref("price")))
    ),
    "a computed argument": grouped(
        DECLARING,
        MINUTE,
        FITS.keys,
        (Aggregation("m", "avg", call("case", ref("big"), ref("price"), ref("price"))),),
    ),
}


def test_the_declared_aggregate_adds_its_category_to_the_reach() -> None:
    assert lowers(FITS, Emission.CLOSED) == DECLARED
    assert reach(whole(FITS), reach_of) == Label.of(0, 7)
    renamed = grouped(DECLARING, MINUTE, (Column("k", ref("symbol")),), (COUNT,))
    assert lowers(renamed, Emission.CLOSED) == DECLARED


@pytest.mark.parametrize("plan", NOT_LOWERED.values(), ids=NOT_LOWERED.keys())
def test_no_other_aggregate_lowers(plan: Node | Plan) -> None:
    meant = whole(plan)
    assert lowers(meant.root, meant.emission) is None
    assert reach(meant, reach_of) == Label.of(0)


def test_a_plain_key_is_the_declared_one_or_it_does_not_lower() -> None:
    """Also where its name comes behind that of the declared one."""
    declared = replace(DECLARED, keys=("big",))
    source = Source(relation(declared=declared))
    assert lowers(grouped(source, MINUTE, (column("big"),), (COUNT,)), Emission.CLOSED) == declared
    assert lowers(grouped(source, MINUTE, (column("symbol"),), (COUNT,)), Emission.CLOSED) is None


def test_which_streams_are_lowered() -> None:
    below = Filter(FITS, call("is_null", ref("symbol")))
    assert lowered_streams(whole(below)) == {DECLARING.relation.object_id}
    assert lowered_streams(whole(grouped(DECLARING, MINUTE, (), (COUNT,)))) == frozenset()
    assert lowered_streams(whole(JOINED)) == frozenset()


def test_of_which_streams_senders_are_counted() -> None:
    """Of a stream with a declared aggregate that the plan gives, and below a minimum of them."""
    assert counted_streams(whole(FITS)) == lowered_streams(whole(FITS)) != frozenset()
    counting = Aggregate(Windowed(SOURCE, MINUTE), (), (COUNT,), Enough(3))
    assert counted_streams(whole(Project(counting, (column("n"),)))) == {SOURCE.relation.object_id}
    assert counted_streams(whole(WINDOWED)) == frozenset()
    both = Union((FITS, replace(FITS, keys=(), enough=Enough(3))))
    assert counted_streams(whole(both)) == {DECLARING.relation.object_id}


def test_the_event_time_that_is_kept_is_found_by_its_name() -> None:
    """Whatever is before it, and however its name was made."""
    made = "".join(("wh", "en"))
    assert checked(Project(OTHER, (column("name"), Column("t", ref(made))))).event_time == "t"
    assert checked(Project(OTHER, (column("name"),))).event_time is None
