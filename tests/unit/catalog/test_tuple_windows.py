"""Windows of tuples in policies: example 2 of paper 002, and what may not go around them.

The test's numbers: one tuple comes each second, and its volume is what must stay hidden.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.plan import Plan
from catalog.relation import Relation
from catalog.role_view import RoleView, TupleWindow, checked_view
from catalog.schema import Schema
from catalog.view_merging import all_of
from catalog.view_plan import ViewedStream, through_views
from catalog.view_windows import from_whole_windows
from secadmin.languages import parse_sql
from tests.oracle.plans import run
from tests.oracle.values import EPOCH, Tuple, Value
from tests.unit.catalog.views import STREAM, view

LABEL = Label.of(0)
SEEN = view(None, "ts: max", "symbol", "volume: sum", window=TupleWindow(3, 2))
VOLUMES = st.lists(st.integers(-1000, 1000), min_size=8, max_size=20)


def viewed(text: str, seen: RoleView = SEEN) -> Plan:
    """The plan of a query as the policy shows the stream."""
    return through(text, checked_view(seen, STREAM))


def through(text: str, seen: RoleView) -> Plan:
    stream = ViewedStream(STREAM, seen)

    class Streams:
        def relation(self, _name: str) -> Relation:
            return stream.relation

    plan = through_views(parse_sql(text, Streams()).plan, {STREAM.object_id: stream})
    analyse(plan)
    return plan


class Whole:
    """Resolves the stream for a role without a policy."""

    def relation(self, _name: str) -> Relation:
        return STREAM


def sums(size: int, slide: int = 2, name: str = "trades") -> str:
    return f"SELECT RSTREAM sum(volume) AS total FROM {name} [ROWS {size} SLIDE {slide}]"


def answers(plan: Plan, volumes: list[int], symbols: str = "A") -> list[tuple[int, Value]]:
    """The results: the second of the last tuple, and the last value."""
    table = [
        Tuple((EPOCH + timedelta(seconds=at), symbols[at % len(symbols)], 1.0, volume), LABEL)
        for at, volume in enumerate(volumes)
    ]
    found = run(plan.root, {STREAM.name: table}, lambda _: LABEL)
    return [(_second(each.values[0]), each.values[-1]) for each in found]


def _second(time: Value) -> int:
    assert isinstance(time, datetime)
    return int((time - EPOCH).total_seconds())


def totals(text: str, volumes: list[int]) -> dict[int, int]:
    """The totals of a query over the whole stream, by the second of their last tuple."""
    found = answers(parse_sql(text, Whole()).plan, volumes)
    return {at: total for at, total in found if isinstance(total, int)}


@given(VOLUMES)
def test_several_windows_show_the_whole_stream(volumes: list[int]) -> None:
    """Example 2: from windows of 3, 4 and 5 tuples, each 2 tuples, all but the first three."""
    three, four, five = (totals(sums(size), volumes) for size in (3, 4, 5))
    revealed = {at: four[at] - three[at - 1] for at in four if at - 1 in three}
    revealed |= {at: five[at] - four[at - 1] for at in five if at - 1 in four}
    assert revealed == dict(enumerate(volumes[3:], start=3))


@given(VOLUMES)
def test_one_window_gives_what_its_policy_says(volumes: list[int]) -> None:
    """A result for each second tuple from the third on, and each of three tuples."""
    wanted = [(at, sum(volumes[at - 2 : at + 1])) for at in range(2, len(volumes), 2)]
    assert answers(viewed(sums(3)), volumes) == wanted


ONE = "allow one window over a stream"
CHOSEN = "WITH t AS (SELECT * FROM trades WHERE symbol = 'A') "
OTHERS = "WITH t AS (SELECT * FROM trades WHERE symbol <> 'A') "


def both(first: str, second: str) -> str:
    """A query that gives the pairs of two windows."""
    pairs = f"FROM ({first}) AS a, ({second}) AS b WHERE a.total = b.total"
    return f"SELECT RSTREAM a.total, b.total AS other {pairs}"


def plain(size: int, name: str = "trades") -> str:
    return f"SELECT sum(volume) AS total FROM {name} [ROWS {size} SLIDE 2]"


def test_a_query_has_one_window_over_a_stream() -> None:
    viewed(both(plain(3), plain(3)))
    for size in (4, 5):
        with pytest.raises(InvalidInput, match=ONE):
            viewed(both(plain(3), plain(size)))


def test_windows_that_count_other_tuples_are_two_windows() -> None:
    """If one counts a tuple less, all later windows differ from those of the other."""
    for low in (CHOSEN, OTHERS):
        viewed(low + both(plain(3, "t"), plain(3, "t")))
        with pytest.raises(InvalidInput, match=ONE):
            viewed(low + both(plain(3), plain(3, "t")))
    parts = "SELECT sum(volume) AS total FROM trades [PARTITION BY symbol ROWS 3 SLIDE 2]"
    with pytest.raises(InvalidInput, match=ONE):
        viewed(both(plain(3), parts))


BY_SYMBOL = (
    "SELECT ISTREAM symbol, sum(volume) AS total FROM trades "
    "[PARTITION BY symbol ROWS 3 SLIDE 3] GROUP BY symbol"
)
ALLOWED = [
    sums(4, 3),
    sums(3).replace("RSTREAM", "ISTREAM"),
    sums(3).replace("RSTREAM", "DSTREAM"),
    CHOSEN + sums(3, name="t"),
    BY_SYMBOL,
    BY_SYMBOL + " HAVING sum(volume) > 5",
    BY_SYMBOL.replace("SELECT ISTREAM symbol,", "SELECT ISTREAM").replace(" GROUP BY symbol", ""),
    "SELECT RSTREAM max(ts) AS last, count(symbol) AS n FROM trades [ROWS 3 SLIDE 2]",
]
COARSER = r"windows of tuples, of 3 tuples or more with a slide of 2 or more, such as \[ROWS 3 S"
BELOW = "over all tuples of a window of tuples"
REFUSED = [
    (sums(2), COARSER),
    (sums(3, 1), COARSER),
    (sums(3).replace(" SLIDE 2", ""), COARSER),
    (sums(3).replace("ROWS 3 SLIDE 2", "RANGE 1 HOUR"), COARSER),
    ("SELECT sum(volume) AS v FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)", COARSER),
    ("SELECT symbol FROM trades", COARSER),
    ("SELECT ISTREAM symbol FROM trades [ROWS 3 SLIDE 2]", COARSER),
    ("SELECT ISTREAM volume FROM trades [ROWS 3 SLIDE 2]", r"'volume' only as sum\(volume\)"),
    (sums(3).replace("sum", "max"), r"'volume' only as sum\(volume\)"),
    # These leave a window with fewer tuples than it has.
    (sums(3) + " WHERE symbol = 'A'", BELOW + "; put conditions below the window"),
    (BY_SYMBOL.replace("PARTITION BY symbol ", ""), BELOW + "; for groups by 'symbol'"),
    (BY_SYMBOL.replace("BY symbol ROWS", "BY ts ROWS"), r"'ts' only as max\(ts\)"),
    (BY_SYMBOL.replace("GROUP BY symbol", "GROUP BY symbol || 'x'"), "GROUP BY|" + BELOW),
    (BY_SYMBOL.replace("ISTREAM", "UPSERT"), "each window's result once"),
    (sums(3).replace("sum(volume)", "count(*)"), "no count of tuples"),
    (
        "WITH t AS (SELECT ts, volume FROM trades UNION ALL SELECT ts, volume FROM trades) "
        + sums(3, name="t"),
        "tuples of another one would take the places of hidden ones",
    ),
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_the_policy_allows_is_a_plan(text: str) -> None:
    viewed(text)


@pytest.mark.parametrize(("text", "told"), REFUSED)
def test_what_it_does_not_allow_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        viewed(text)


def test_who_must_tumble_has_each_tuple_once() -> None:
    seen = view(None, "ts: max", "volume: sum", window=TupleWindow(3, 2, tumbling=True))
    viewed(sums(3, 3), seen)
    with pytest.raises(InvalidInput, match="tumbling windows of tuples"):
        viewed(sums(4, 3), seen)


def test_a_policy_of_aggregates_alone_allows_no_window_of_tuples() -> None:
    """It asks for no size, so a window of two tuples would do."""
    with pytest.raises(InvalidInput, match="no moving window over this stream"):
        viewed(sums(3), view(None, "ts", "volume: sum"))


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (view(None, "volume: sum", window=TupleWindow(3, 2)), "let the role use ts with max"),
        (view(None, "ts: min", "volume: sum", window=TupleWindow(3, 2)), "use ts with max"),
        (view(None, "ts: max", window=TupleWindow(1, 1)), "a window of one tuple would show it"),
        (view(None, "ts: max", window=TupleWindow(3, 4)), "a slide of 1 to its size"),
        (view(None, "ts: max", window=TupleWindow(3, 0)), "a slide of 1 to its size"),
        (view(None, "ts: max", window=TupleWindow(10_001, 1)), "has 2 to 10000 tuples"),
        (view(None, "ts", "volume", window=TupleWindow(3, 2)), "name at least one attribute"),
        (view(None, "ts: max", window=TupleWindow(3, 2), minimum=2), "whoever sent them"),
    ],
)
def test_a_policy_that_would_show_more_than_it_says_is_refused(seen: RoleView, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        checked_view(seen, STREAM)


def test_what_policies_hide_together_is_refused() -> None:
    mine = checked_view(SEEN, STREAM)
    few = checked_view(view(None, "ts", "volume: sum", minimum=2), STREAM)
    with pytest.raises(InvalidInput, match="which windows of tuples do not count"):
        through(sums(3, 3), all_of([mine, few]))
    first = checked_view(view(None, "ts: min, last", "volume: sum"), STREAM)
    with pytest.raises(InvalidInput, match="together hide the time of tuples"):
        through(sums(3, 3), all_of([mine, first]))


def test_a_query_that_comes_later_begins_to_count_then() -> None:
    """Its windows hold no tuple from before, also if those would fill its first window."""
    late = from_whole_windows(viewed(sums(3)), {STREAM.object_id: 4_000})
    analyse(late)
    volumes = [2**n for n in range(12)]
    wanted = [(at, sum(volumes[at - 2 : at + 1])) for at in range(6, 12, 2)]
    assert answers(late, volumes) == wanted
    assert from_whole_windows(viewed(sums(3)), {}) == viewed(sums(3))


def test_a_partition_that_is_not_full_shows_nothing() -> None:
    volumes = [1, 10, 100, 1000, 10_000]
    assert answers(viewed(BY_SYMBOL), volumes, "AB") == [(4, 10_101)]


def test_a_view_without_the_event_time_has_no_window() -> None:
    bare = Schema(tuple(a for a in STREAM.schema.attributes if a.name != "ts"))
    with pytest.raises(InvalidInput, match="has no event time"):
        checked_view(
            view(None, "volume: sum", window=TupleWindow(3, 2)),
            replace(STREAM, schema=bare, event_time=None),
        )
