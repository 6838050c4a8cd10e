"""A plan reads of a stream what a view shows, and aggregates what it may only aggregate."""

from __future__ import annotations

import pytest

from catalog.analysis import analyse
from catalog.errors import InvalidInput, NotFound
from catalog.plan import Aggregate, Filter, Plan, Project, Source, walk
from catalog.relation import Relation
from catalog.role_view import RoleView, SmallestWindow, checked_view
from catalog.view_plan import ViewedStream, through_views
from secadmin.languages import parse_sql
from tests.unit.catalog.views import STREAM, view


def read(text: str, seen: RoleView) -> Plan:
    """The plan of a query over the stream as the view shows it."""
    viewed = ViewedStream(STREAM, checked_view(seen, STREAM))

    class Resolver:
        def relation(self, name: str) -> Relation:
            if name != STREAM.name:
                raise NotFound(name)
            return viewed.relation

    plan = through_views(parse_sql(text, Resolver()).plan, {STREAM.object_id: viewed})
    analyse(plan)
    return plan


def grouped(what: str, size: int = 60, slide: int | None = None, key: str = "") -> str:
    """A query with a window in seconds."""
    window = f"HOP(ts, INTERVAL '{slide or size}' SECOND, INTERVAL '{size}' SECOND)"
    return f"SELECT {what} FROM trades GROUP BY {window}{key}"


def test_rows_are_cut_before_anything_else_reads_them() -> None:
    plan = read(grouped("count(*) AS n"), view("price > 5", "ts", "symbol"))
    (source,) = [n for n in walk(plan.root) if isinstance(n, Source)]
    cut = [n for n in walk(plan.root) if isinstance(n, Filter) and n.input is source]
    assert len(cut) == 1
    assert [n for n in walk(plan.root) if isinstance(n, Project) and n.input is cut[0]]


def test_every_use_of_a_stream_is_cut() -> None:
    text = """SELECT a.symbol FROM trades AS a JOIN trades AS b ON a.symbol = b.symbol
    AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"""
    plan = read(text, view("price > 5"))
    sources = [n for n in walk(plan.root) if isinstance(n, Source)]
    cut = [n for n in walk(plan.root) if isinstance(n, Filter) and n.input in sources]
    assert len(cut) == len(sources) == 2


def test_a_conditional_attribute_is_not_required() -> None:
    shown = view(None, "symbol when price > 5", "ts")
    plan = read("SELECT symbol, ts FROM trades", shown)
    by_name = {a.name: a.required for a in analyse(plan).schema.attributes}
    assert by_name == {"symbol": False, "ts": True}


RENAMED = """SELECT avg(cost) AS c FROM (SELECT ts, price AS cost FROM trades) AS t
GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"""
PAIRS = """SELECT 1 AS one FROM trades AS a JOIN trades AS b
ON a.price = b.price AND b.ts BETWEEN a.ts AND a.ts"""
AGGREGATES = view(None, "symbol", "price: avg, count", "volume: sum")
WINDOWS = view(None, "price: avg, max", window=(120, 60))

ALLOWED = [
    (AGGREGATES, grouped("avg(price) AS p, sum(volume) AS v")),
    (AGGREGATES, grouped("symbol, avg(price) AS p", key=", symbol")),
    (AGGREGATES, "SELECT symbol FROM trades WHERE symbol = 'A'"),
    (AGGREGATES, grouped("count(*) AS n")),
    (AGGREGATES, RENAMED),
    (AGGREGATES, grouped("avg(price) AS p") + " HAVING avg(price) > 5"),
    (WINDOWS, grouped("avg(price) AS p", 120, 60)),
    (WINDOWS, grouped("max(price) AS p", 180, 180)),
]
REFUSED = [
    (AGGREGATES, "SELECT price FROM trades", "'price' only as avg(price), count(price)"),
    (AGGREGATES, "SELECT price + 1 AS p FROM trades", "'price' only as avg(price)"),
    (AGGREGATES, "SELECT symbol FROM trades WHERE price > 5", "'price' only as avg(price)"),
    (AGGREGATES, grouped("max(price) AS p"), "'price' only as avg(price), count(price)"),
    (AGGREGATES, grouped("avg(price + 1) AS p"), "'price' only as avg(price), count(price)"),
    (AGGREGATES, grouped("price, avg(price) AS p", key=", price"), "'price' only as avg(price)"),
    (AGGREGATES, grouped("avg(price) AS p", 60, 30), "aggregates over tumbling windows only"),
    (AGGREGATES, "SELECT ts FROM trades", "'ts' only as the time of windows; leave it out"),
    (AGGREGATES, grouped("avg(price) AS p") + " EMIT UPDATES", "leave EMIT UPDATES out"),
    (AGGREGATES, "SELECT avg(price) AS p FROM trades [RANGE 1 MINUTE]", "no moving window"),
    (WINDOWS, grouped("avg(price) AS p", 60, 60), "of 120 seconds or more with a slide of 60"),
    (WINDOWS, grouped("avg(price) AS p", 120, 30), "with a slide of 60 seconds or more"),
    (WINDOWS, grouped("count(*) AS n", 120), "no count of tuples"),
    (WINDOWS, "SELECT 1 AS one FROM trades", "allow only aggregates over windows"),
    (WINDOWS, "SELECT 1 AS one FROM trades [ROWS 5]", "no moving window"),
    (WINDOWS, grouped("sum(price) AS p", 120), "'price' only as avg(price), max(price)"),
    (
        WINDOWS,
        PAIRS,
        "'price' only as avg(price)",
    ),
]


@pytest.mark.parametrize(("seen", "text"), ALLOWED)
def test_what_a_view_allows_is_a_plan(seen: RoleView, text: str) -> None:
    read(text, seen)


@pytest.mark.parametrize(("seen", "text", "told"), REFUSED)
def test_what_a_view_does_not_allow_is_refused(seen: RoleView, text: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text, seen)
    assert told in refused.value.detail.replace("a.price", "price")


def test_a_branch_of_a_union_is_restricted_too() -> None:
    branches = "SELECT ts, 1.5 AS cost FROM trades UNION ALL SELECT ts, price AS cost FROM trades"
    text = f"SELECT {{}} FROM ({branches}) AS t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    seen = view(None, "symbol", "price: avg")
    read(text.format("avg(cost) AS c"), seen)
    with pytest.raises(InvalidInput, match="'cost' only as avg"):
        read(text.format("max(cost) AS c"), seen)


def test_nothing_fills_up_a_small_group() -> None:
    """Neither constants nor the same tuples once more."""
    seen = view(None, "ts", "price: avg", minimum=3)
    mean = "SELECT avg(cost) AS c FROM ({}) AS t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    own = "SELECT ts, price AS cost FROM trades"
    for other in (own, "SELECT ts, 0.5 AS cost FROM trades"):
        with pytest.raises(InvalidInput, match="minimum of values in each group"):
            read(mean.format(f"{own} UNION ALL {other}"), seen)
    read(f"SELECT ts FROM trades UNION ALL {'SELECT ts FROM trades'}", seen)


def test_small_groups_are_left_out() -> None:
    seen = view(None, "price: avg", minimum=3)
    plan = read(grouped("avg(price) AS p"), seen)
    (aggregate,) = [n for n in walk(plan.root) if isinstance(n, Aggregate)]
    assert [(a.name, a.function) for a in aggregate.aggregations][1:] == [("values_1", "count")]
    assert analyse(plan).schema.names == ("p",)


def test_who_must_tumble_may_not_hop() -> None:
    seen = view(None, "price: avg", window=SmallestWindow(60_000, 10_000, tumbling=True))
    read(grouped("avg(price) AS p", 60, 60), seen)
    with pytest.raises(InvalidInput, match="only aggregates over tumbling windows of event time"):
        read(grouped("avg(price) AS p", 60, 30), seen)
