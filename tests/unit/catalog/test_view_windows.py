"""Windows of policies: what several over one stream reveal, and that a query has one (002 §3.4)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.plan import WINDOW_START, Filter, Plan, walk
from catalog.relation import Relation
from catalog.role_view import checked_view
from catalog.view_plan import ViewedStream, through_views
from catalog.view_windows import from_whole_windows
from secadmin.languages import parse_sql
from tests.oracle.plans import run
from tests.oracle.values import EPOCH, Tuple
from tests.unit.catalog.views import STREAM, view

SEEN = checked_view(view(None, "ts", "symbol", "volume: sum", window=(3, 1)), STREAM)


class Trades:
    """Resolves the one stream, as a view shows it or whole."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def relation(self, name: str) -> Relation:
        return self._relation


def sums(size: int, slide: int = 1) -> str:
    """Example 2's query: the sum over `size` seconds, each second."""
    window = f"HOP(ts, INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND)"
    return f"SELECT window_start, sum(volume) AS total FROM trades GROUP BY {window}"


GROUPS = "FROM trades GROUP BY HOP(ts, INTERVAL '3' SECOND, INTERVAL '3' SECOND), symbol"


def viewed(text: str) -> Plan:
    """The plan of a query as the policy shows the stream."""
    stream = ViewedStream(STREAM, SEEN)
    parsed = parse_sql(text, Trades(stream.relation)).plan
    plan = through_views(parsed, {STREAM.object_id: stream})
    analyse(plan)
    return plan


def answers(plan: Plan, volumes: list[int]) -> dict[int, int]:
    """By the second in which a window begins, its sum: one tuple came each second."""
    label = Label.of(0)
    table = [
        Tuple((EPOCH + timedelta(seconds=second), "A", 1.0, volume), label)
        for second, volume in enumerate(volumes)
    ]
    results = run(plan.root, {STREAM.name: table}, lambda _: label)
    found = {}
    for start, total in (each.values for each in results):
        assert isinstance(start, datetime) and isinstance(total, int)
        found[int((start - EPOCH).total_seconds())] = total
    return found


@given(st.lists(st.integers(-1000, 1000), min_size=12, max_size=24))
def test_two_windows_show_the_whole_stream(volumes: list[int]) -> None:
    """Example 2, for a step of 1: from windows of N and N + 1, all but the first N tuples.

    (Here the size of a window is a multiple of its step, so only this step makes it so easy.)
    """
    three, four = (answers(parse_sql(sums(size), Trades(STREAM)).plan, volumes) for size in (3, 4))
    revealed = {start + 3: four[start] - three[start] for start in range(len(volumes) - 3)}
    assert revealed == dict(enumerate(volumes[3:], start=3))


def test_a_query_has_one_window_over_a_stream() -> None:
    viewed(sums(5))
    for other in (sums(4), sums(6, slide=2)):
        with pytest.raises(InvalidInput, match="allow one window over a stream"):
            viewed(f"{sums(5)} UNION ALL {other}")
    viewed(f"{sums(5)} UNION ALL {sums(5)}")


def test_windows_over_results_are_free() -> None:
    again = f"""WITH t AS ({sums(4)}) SELECT a.total FROM t AS a JOIN t AS b
    ON a.total = b.total AND b.window_start BETWEEN a.window_start AND a.window_start"""
    try:
        viewed(again)
    except InvalidInput as told:
        assert "one window" not in str(told), "the windows are the same"


def test_a_window_that_was_seen_in_part_has_no_result() -> None:
    """A query that came in the middle of a window would show a sum of fewer tuples."""
    whole = viewed(sums(4))
    late = from_whole_windows(whole, {STREAM.object_id: 7_000})
    analyse(late)
    volumes = list(range(20))
    from_seven = {start: total for start, total in answers(whole, volumes).items() if start >= 7}
    assert answers(late, volumes) == from_seven
    assert 8 in from_seven and 6 not in from_seven


def test_the_order_of_a_windows_groups_is_of_whole_windows() -> None:
    inner = f"SELECT window_start, window_end, symbol, sum(volume) AS total {GROUPS}"
    order = "ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY total DESC) AS rn"
    plan = viewed(f"SELECT * FROM (SELECT *, {order} FROM ({inner}) AS w) AS t WHERE rn <= 1")
    late = from_whole_windows(plan, {STREAM.object_id: 7_000})
    analyse(late)
    label = Label.of(0)
    table = [
        Tuple((EPOCH + timedelta(seconds=second), symbol, 1.0, volume), label)
        for second, symbol, volume in ((1, "A", 2), (4, "A", 2), (10, "A", 1), (11, "B", 3))
    ]
    found = [run(each.root, {STREAM.name: table}, lambda _: label) for each in (plan, late)]
    shown = [{(r.values[0], *r.values[2:]) for r in results} for results in found]
    first, then = EPOCH, EPOCH + timedelta(seconds=9)
    between = (EPOCH + timedelta(seconds=3), "A", 2, 1)
    assert shown == [{(first, "A", 2, 1), between, (then, "B", 3, 1)}, {(then, "B", 3, 1)}]


def test_only_the_windows_over_the_stream_are_cut() -> None:
    plan = viewed(sums(4))
    assert from_whole_windows(plan, {}) == plan
    assert from_whole_windows(plan, {STREAM.object_id + 1: 7_000}) == plan
    added = [
        node
        for node in walk(from_whole_windows(plan, {STREAM.object_id: 7_000}).root)
        if isinstance(node, Filter) and WINDOW_START in str(node.condition)
    ]
    assert len(added) == 1
