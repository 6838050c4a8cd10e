"""A plan reads of a stream what a view shows, and aggregates what it may only aggregate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.analysis import analyse
from catalog.errors import InvalidInput, NotFound
from catalog.plan import Aggregate, Enough, Filter, Match, Plan, Project, Source, walk
from catalog.reach import counted_streams
from catalog.relation import Relation
from catalog.role_view import RoleView, SmallestWindow, checked_view
from catalog.view_plan import ViewedStream, through_views
from catalog.view_trial import sight_of
from secadmin.languages import parse_sql
from tests.unit.catalog.views import STREAM, right, view
from tests.unit.secadmin.languages.shorthand import show


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
BY_TIME = """FROM trades AS a JOIN trades AS b
ON a.symbol = b.symbol AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"""
MEANS = "SELECT window_end, avg(price) AS p FROM trades GROUP BY TUMBLE(ts, INTERVAL '120' SECOND)"
AGGREGATES = view(None, "symbol", "price: avg, count", "volume: sum")
WINDOWS = view(None, "price: avg, max", window=(120, 60))


def pattern(measures: str, skip: str = "PAST LAST ROW", define: str = "") -> str:
    """A query with a pattern, which gives what `measures` says as m."""
    return f"""SELECT m FROM trades MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY ts MEASURES {measures} AS m AFTER MATCH SKIP {skip}
    PATTERN (A B+) WITHIN INTERVAL '5' MINUTE {define})"""


EACH = "CROSS JOIN UNNEST(ARRAY['x', 'y']) AS t(part)"
ALLOWED = [
    (view(None, "symbol", "ts"), f"SELECT part FROM trades {EACH}"),
    (view(None, "symbol", "price: last"), pattern("LAST(B.price)")),
    (view(None, "symbol", "ts"), pattern("1").replace("AFTER", "ALL ROWS PER MATCH AFTER")),
    (AGGREGATES, pattern("avg(B.price)")),
    (AGGREGATES, pattern("avg(B.price) + sum(B.volume)")),
    (AGGREGATES, pattern("LAST(symbol)", "TO NEXT ROW", "DEFINE B AS symbol = 'A'")),
    (AGGREGATES, grouped("avg(price) AS p, sum(volume) AS v")),
    (AGGREGATES, grouped("symbol, avg(price) AS p", key=", symbol")),
    (AGGREGATES, "SELECT symbol FROM trades WHERE symbol = 'A'"),
    (AGGREGATES, grouped("count(*) AS n")),
    (AGGREGATES, RENAMED),
    (AGGREGATES, grouped("avg(price) AS p") + " HAVING avg(price) > 5"),
    (WINDOWS, f"SELECT x.p FROM ({MEANS}) AS x JOIN ({MEANS}) AS y ON x.window_end = y.window_end"),
    (WINDOWS, grouped("avg(price) AS p", 120, 60)),
    (WINDOWS, grouped("max(price) AS p", 180, 180)),
]
REFUSED = [
    (AGGREGATES, pattern("max(B.price)"), "'price' only as avg(price), count(price)"),
    (AGGREGATES, pattern("LAST(price)"), "'price' only as avg(price), count(price)"),
    (AGGREGATES, pattern("avg(B.price + 1)"), "'price' only as avg(price), count(price)"),
    (AGGREGATES, pattern("avg(B.price)", "TO NEXT ROW"), "groups that do not overlap"),
    (AGGREGATES, pattern("avg(price) - avg(B.price)"), "groups that do not overlap"),
    (AGGREGATES, pattern("1", define="DEFINE B AS price > 5"), "'price' only as avg(price)"),
    (AGGREGATES, pattern("1", define="DEFINE B AS avg(B.price) > 5"), "'price' only as avg(price)"),
    (AGGREGATES, pattern("LAST(ts)"), "'ts' only as the time of windows; leave it out"),
    # The last tuple is an aggregate that this policy allows. A tuple before it is a single tuple.
    (view(None, "symbol", "price: last"), pattern("LAST(B.price, 1)"), "only as last(price)"),
    (view(None, "symbol", "price: last"), pattern("PREV(B.price)"), "only as last(price)"),
    (view(None, "symbol", "price: last"), pattern("NEXT(price)"), "only as last(price)"),
    (
        AGGREGATES,
        pattern("avg(B.price)").replace("AFTER", "ALL ROWS PER MATCH AFTER"),
        "policies show price, ts, volume in no single tuple: write ONE ROW PER MATCH",
    ),
    (
        AGGREGATES,
        pattern("1").replace("SELECT m", "SELECT match_time"),
        "'match_time' only as the time of windows; leave it out",
    ),
    (
        WINDOWS,
        pattern("avg(price)").replace("PARTITION BY symbol", ""),
        "allow no pattern over this stream",
    ),
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
    (AGGREGATES, f"SELECT symbol FROM trades {EACH}", "each tuple counts once; leave UNNEST out"),
    (
        WINDOWS,
        grouped("avg(price) AS p", 120).replace("trades", f"trades {EACH}"),
        "each tuple counts once; leave UNNEST out",
    ),
    (WINDOWS, grouped("sum(price) AS p", 120), "'price' only as avg(price), max(price)"),
    (
        WINDOWS,
        PAIRS,
        "'price' only as avg(price)",
    ),
    (
        WINDOWS,
        f"SELECT w.p FROM trades AS t JOIN ({MEANS}) AS w ON t.ts = w.window_end",
        "'t.ts' only as the time of windows",
    ),
    (AGGREGATES, f"SELECT a.symbol {BY_TIME}", "'a.ts' only as the time of windows"),
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
        with pytest.raises(InvalidInput, match="minimum of senders in each group"):
            read(mean.format(f"{own} UNION ALL {other}"), seen)
    read(f"SELECT ts FROM trades UNION ALL {'SELECT ts FROM trades'}", seen)


def test_no_join_fills_up_a_small_group() -> None:
    """One tuple may be in many pairs."""
    mean = f"SELECT avg(a.price) AS p {BY_TIME} GROUP BY TUMBLE(a.ts, INTERVAL '1' MINUTE)"
    read(mean, view(None, "ts", "symbol", "price: avg"))
    few = view(None, "ts", "symbol", "price: avg", minimum=3)
    with pytest.raises(InvalidInput, match="leave the join out"):
        read(mean, few)
    renamed = f"SELECT avg(cost) AS p FROM (SELECT a.ts, a.price AS cost {BY_TIME}) AS t"
    with pytest.raises(InvalidInput, match="leave the join out"):
        read(f"{renamed} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)", few)
    read(f"SELECT count(*) AS n {BY_TIME} GROUP BY TUMBLE(a.ts, INTERVAL '1' MINUTE)", few)


def test_small_groups_are_left_out() -> None:
    seen = view(None, "price: avg", minimum=3)
    plan = read(grouped("avg(price) AS p"), seen)
    (aggregate,) = [n for n in walk(plan.root) if isinstance(n, Aggregate)]
    assert aggregate.enough == Enough(3, ("price",))
    assert counted_streams(plan) == {STREAM.object_id}
    assert analyse(plan).schema.names == ("p",)
    # A renamed attribute is counted under its new name, and tuples where no attribute is used.
    for text, of in ((RENAMED, ("cost",)), (grouped("count(*) AS n", 60), ())):
        hidden = replace(seen, window=SmallestWindow(1_000, 1_000)) if of == () else seen
        shown = replace(hidden, attributes=(right("price: avg, count"),))
        (aggregate,) = [n for n in walk(read(text, shown).root) if isinstance(n, Aggregate)]
        assert aggregate.enough == Enough(3, of)
    free = view(None, "price: avg", "volume", minimum=3)
    assert counted_streams(read(grouped("avg(volume) AS v"), free)) == frozenset()


SESSION = "SELECT avg(price) AS p FROM trades GROUP BY SESSION(ts, INTERVAL '1' HOUR)"


@pytest.mark.parametrize(
    "seen",
    [
        view(None, "price: avg"),
        view(None, "price: avg", window=(1, 1)),
        view(None, "price: avg", window=SmallestWindow(60_000, 10_000, tumbling=True)),
    ],
)
def test_a_session_is_of_no_size(seen: RoleView) -> None:
    """It may be as short as one tuple, whatever its gap."""
    with pytest.raises(InvalidInput, match=r"your roles' policies allow .*aggregates over"):
        read(SESSION, seen)
    assert "session 3600000" in show(read(SESSION, view(None, "price", "ts")))


def test_a_window_over_windows_reads_what_the_policy_allows() -> None:
    inner = grouped("window_end, avg(price) AS p", 120)
    text = f"SELECT max(p) AS m FROM ({inner}) AS t GROUP BY TUMBLE(window_end, INTERVAL '1' HOUR)"
    assert "max(p)" in show(read(text, view(None, "price: avg", window=(120, 120))))
    with pytest.raises(InvalidInput, match="of 180 seconds or more"):
        read(text, view(None, "price: avg", window=(180, 180)))


def test_who_must_tumble_may_not_hop() -> None:
    seen = view(None, "price: avg", window=SmallestWindow(60_000, 10_000, tumbling=True))
    read(grouped("avg(price) AS p", 60, 60), seen)
    with pytest.raises(InvalidInput, match="only aggregates over tumbling windows of event time"):
        read(grouped("avg(price) AS p", 60, 30), seen)


def test_patterns_count_no_senders() -> None:
    seen = view(None, "symbol", "price: avg", minimum=3)
    with pytest.raises(InvalidInput, match="which patterns do not count; use TUMBLE"):
        read(pattern("avg(B.price)"), seen)
    read(pattern("LAST(symbol)"), seen)


def test_a_pattern_that_names_attributes_without_a_right_is_refused_with_their_list() -> None:
    with pytest.raises(InvalidInput) as refused:
        read(pattern("LAST(A.volume)", define="DEFINE B AS price > 5"), view(None, "ts", "symbol"))
    assert "unknown attributes 'volume', 'price'; there are: ts, symbol" in refused.value.detail


# Figure 3 of paper 003: what the role may see, and what a pattern reads of the stream.
TREES = {
    "a, all attributes": (view(), "trades"),
    "c, one attribute is denied": (
        view(None, "ts", "symbol", "volume"),
        "project(trades, ts=ts, symbol=symbol, volume=volume)",
    ),
    "d, between two values": (
        view("price > 1 AND price < 9"),
        "filter(trades, (and (> price 1) (< price 9)))",
    ),
    "e, single values": (
        view("symbol = 'A' AND volume <> 2"),
        "filter(trades, (and (= symbol 'A') (<> volume 2)))",
    ),
    "f, statistics": (
        view(None, "symbol", "price: avg"),
        "project(trades, ts=ts, symbol=symbol, price=price)",
    ),
}


@pytest.mark.parametrize("tree", TREES)
def test_a_pattern_reads_what_the_detecting_tree_passes(tree: str) -> None:
    seen, passed = TREES[tree]
    text = pattern("LAST(symbol)")
    plan = read(text, seen) if seen.restricts else parse_sql(text, Whole()).plan
    (match,) = [n for n in walk(plan.root) if isinstance(n, Match)]
    assert show(match.input) == passed


class Whole:
    """A resolver for a role without a policy."""

    def relation(self, _name: str) -> Relation:
        """The stream."""
        return STREAM


def test_a_detecting_tree_without_attributes_passes_nothing() -> None:
    """Figure 3 (b): all attributes are denied."""
    with pytest.raises(InvalidInput):
        read(pattern("LAST(symbol)"), RoleView(attributes=()))


def test_a_tuple_whose_last_visible_attribute_is_gone_is_not_passed() -> None:
    seen = view(None, "symbol when price > 5", "volume when price < 1")
    plan = read("SELECT symbol FROM trades", seen)
    cut = [n for n in walk(plan.root) if isinstance(n, Filter)]
    assert [show(each) for each in cut] == ["filter(trades, (or (> price 5) (< price 1)))"]
    assert not sight_of(seen, STREAM.schema, {"symbol": "A", "price": 3.0}).seen
    assert sight_of(seen, STREAM.schema, {"symbol": "A", "price": 6.0}).seen
