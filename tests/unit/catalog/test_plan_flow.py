"""What flows along a plan's edges: schemas, event time, reach; which aggregate lowers."""

from dataclasses import replace

import pytest

from catalog.expression import MAX_DEPTH as EXPRESSION_DEPTH
from catalog.label import Label
from catalog.output_relation import lateness_ms
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Plan,
    Project,
    Source,
    Union,
    Window,
    gives_updates,
    is_stateful,
    sources,
    walk,
)
from catalog.plan_check import (
    MAX_DEPTH,
    check_plan,
    event_time,
    is_public,
    lowered_streams,
    lowers,
    output_schema,
    reach,
)
from catalog.relation import DeclaredAggregate
from catalog.schema import Attribute, Schema
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
    ref,
    relation,
    schema,
)

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
    assert is_stateful(union)
    assert not is_stateful(TIMELESS)
    assert len(list(walk(union))) == 6


def test_an_update_lags_by_a_window_more() -> None:
    other = replace(UPDATING, window=Window(180_000, 60_000))
    assert not gives_updates(WINDOWED)
    assert gives_updates(Filter(UPDATING, ref("big")))
    assert lateness_ms(Union((OTHER, UPDATING))) == 5 + 60_000
    assert lateness_ms(Union((other, UPDATING))) == 180_000


def test_a_pair_lags_by_the_joins_interval_more() -> None:
    late = replace(JOINED, lower_ms=-3_600_000, upper_ms=-600_000)
    assert lateness_ms(late) == 5 + 3_000_000
    assert lateness_ms(Project(Union((JOINED, late)), (column("at"),))) == 5 + 3_000_000
    assert lateness_ms(Union((SOURCE, OTHER))) == 5


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
    "updates, which differ by a tuple": replace(FITS, updates=True),
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


def test_a_plain_key_is_the_declared_one_or_it_does_not_lower() -> None:
    """Also where its name comes behind that of the declared one."""
    declared = replace(DECLARED, keys=("big",))
    source = Source(relation(declared=declared))
    assert lowers(Aggregate(source, MINUTE, (column("big"),), (COUNT,))) == declared
    assert lowers(Aggregate(source, MINUTE, (column("symbol"),), (COUNT,))) is None


def test_which_streams_are_lowered() -> None:
    below = Filter(FITS, call("is_null", ref("symbol")))
    assert lowered_streams(below) == {DECLARING.relation.object_id}
    assert lowered_streams(Aggregate(DECLARING, MINUTE, (), (COUNT,))) == frozenset()
    assert lowered_streams(JOINED) == frozenset()


def test_the_event_time_that_is_kept_is_found_by_its_name() -> None:
    """Whatever stands before it, and however its name was made."""
    made = "".join(("wh", "en"))
    assert event_time(Project(OTHER, (column("name"), Column("t", ref(made))))) == "t"
    assert event_time(Project(OTHER, (column("name"),))) is None
