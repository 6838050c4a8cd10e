"""Semantics `view`: each class gets what the query gives over the tuples that it may see.

The oracle filters first and runs the plan afterwards, for each class by itself (the partitioned
windows of 000 §5.2.1, the stream shepherd of 001 §4.1). The platform runs all classes in one query.
VIEW_CASES sets how many random cases of each kind there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.plan import Filter, Join, JoinKind, Node, Project, Source, Union, walk
from catalog.runs import FanOutClass
from secadmin.languages import parse_sql
from secfilter.class_views import ClassViews
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from tests.differential.case import Class, viewed
from tests.differential.comparing import check_all
from tests.differential.delivered import header, run_of
from tests.differential.engine import reader, stored
from tests.differential.expected import expected
from tests.differential.make_case import make_case, make_matching_case, make_moving_case
from tests.differential.market import COMPANY, EU, QUOTES, TRADES, Market, case_of
from tests.lanes import number_of
from tests.oracle.values import Tuple
from tests.outputs import with_output

NUMBER = number_of("VIEW_CASES", sample=2, long=500)
TOGETHER = 25
KINDS = {"windows": make_case, "moving": make_moving_case, "patterns": make_matching_case}


@pytest.mark.parametrize("start", range(0, NUMBER, TOGETHER))
@pytest.mark.parametrize("kind", KINDS)
def test_generated(interpreted: SparkSession, kind: str, start: int) -> None:
    print(f"{kind}: seeds {start} to {start + TOGETHER - 1}")
    seeds = range(start, min(start + TOGETHER, NUMBER))
    check_all(interpreted, [viewed(KINDS[kind](seed)) for seed in seeds])


_BOTH = 'SELECT * FROM trades UNION ALL SELECT * FROM "trades-eu"'
QUERIES = {
    "keys": f"SELECT symbol, sum(volume) AS total FROM ({_BOTH}) "
    "GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol",
    "distinct": "SELECT count(DISTINCT volume) AS many, count(*) AS n FROM trades "
    "GROUP BY HOP(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE)",
    "join": "SELECT t.ts, t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "AND q.at BETWEEN t.ts - INTERVAL '1' MINUTE AND t.ts + INTERVAL '1' MINUTE",
    "rows": "SELECT ISTREAM count(*) AS n FROM trades [ROWS 2]",
    "outer": "SELECT ISTREAM t.price, q.bid FROM trades [ROWS 3] AS t LEFT JOIN quotes [ROWS 2] "
    "AS q ON t.symbol = q.symbol",
    "outer of streams": "SELECT t.price, q.bid FROM trades AS t FULL JOIN quotes AS q ON "
    "t.symbol = q.symbol AND q.at BETWEEN t.ts AND t.ts + INTERVAL '1' MINUTE",
    "semi of streams": "SELECT t.price FROM trades AS t LEFT SEMI JOIN quotes AS q ON "
    "t.symbol = q.symbol AND q.at BETWEEN t.ts AND t.ts + INTERVAL '1' MINUTE",
    "anti of streams": "SELECT t.price FROM trades AS t LEFT ANTI JOIN quotes AS q ON "
    "t.symbol = q.symbol AND q.at BETWEEN t.ts AND t.ts + INTERVAL '1' MINUTE",
    "sessions": "SELECT count(*) AS n, FIRST(price) AS p FROM trades GROUP BY "
    "SESSION(ts, INTERVAL '30' SECOND)",
    "windows of windows": "SELECT max(n) AS m FROM (SELECT window_end, symbol, count(*) AS n FROM "
    "trades GROUP BY TUMBLE(ts, INTERVAL '30' SECOND), symbol) AS t GROUP BY "
    "TUMBLE(window_end, INTERVAL '1' MINUTE)",
    "not between": "SELECT match_time FROM PATTERN SEQ(trades a, NOT quotes q, trades b) "
    "WITHIN INTERVAL '1' MINUTE MATCH_RECOGNIZE (PARTITION BY symbol)",
    "no state": _BOTH,
}
CLEARANCES = ((), (TRADES,), (TRADES, COMPANY), (EU, QUOTES), (TRADES, EU, QUOTES, COMPANY))


@pytest.mark.long
def test_queries(spark: SparkSession) -> None:
    """With generated code, as in production."""
    classes = [Class(Clearance.of(*held)) for held in CLEARANCES]
    plans = {name: parse_sql(text, Market()) for name, text in QUERIES.items()}
    check_all(spark, [viewed(case_of(name, plan, classes)) for name, plan in plans.items()])


@pytest.mark.long
def test_the_generated_cases_tell_view_from_strong() -> None:
    cases = [make(seed) for make in KINDS.values() for seed in range(8)]
    differing = [
        case.name
        for case in map(viewed, cases)
        if expected(case).delivered != expected(replace(case, view=False)).delivered
    ]
    assert len(differing) > 6, "other cases would show nothing"
    assert any(any(each) for case in map(viewed, cases) for each in expected(case).delivered)


def is_monotone(node: Node) -> bool:
    """Whether a tuple more takes no result of the node away."""
    if isinstance(node, Join):
        return node.kind in (JoinKind.INNER, JoinKind.SEMI)
    return isinstance(node, Source | Filter | Project | Union)


def test_the_sink_checks_each_result_once_more(spark: SparkSession) -> None:
    """As if a result had come into the view of a class that may not see it."""
    plan = parse_sql(QUERIES["keys"], Market())
    case = viewed(case_of("keys", plan, [Class(Clearance.of(TRADES, COMPANY))]))
    run = run_of(case)
    (wide,) = run.classes
    read = reader(stored(spark, [case]), 0, case)
    compiled = compile_plan(analyse(case.plan), read, case.reach_of, viewers=run.viewers)
    for held, others in (((TRADES, COMPANY), True), ((TRADES,), False)):
        narrow = with_output(run, classes=(replace(wide, clearance=Clearance.of(*held)),))
        labels = [
            Label.from_wire(header(row, 0, "label")) or Label()
            for row in fan_out(compiled, narrow, "key").collect()
        ]
        assert labels
        assert any(COMPANY in each.categories() for each in labels) is others


def test_classes_that_could_not_be_told_apart_have_no_views() -> None:
    one = FanOutClass("a", Clearance.of(TRADES), id=1)
    layout = LabelLayout.of(Label.of(TRADES))
    assert ClassViews((one, replace(one, topic="b", id=2)), layout).ids == {1, 2}
    for other in (
        replace(one, topic="b"),
        replace(one, id=0),
        replace(one, id=2, weak=True),
        replace(one, id=2, beyond=Clearance()),
    ):
        with pytest.raises(ValueError, match=r"view of its own|views of their own"):
            ClassViews((one, other), layout)


def test_view_is_strong_for_plans_without_groups_and_windows() -> None:
    """A tuple more never takes a result away there, and no result depends on all tuples."""
    cases = [
        make_case(seed) for seed in range(number_of("VIEW_MONOTONE_CASES", sample=60, long=2_000))
    ]
    monotone = [viewed(case) for case in cases if all(map(is_monotone, walk(case.plan.root)))]
    assert any(isinstance(node, Join) for case in monotone for node in walk(case.plan.root))
    assert len(monotone) > 12
    for case in monotone:
        by_class, together = expected(case), expected(replace(case, view=False))
        pairs = zip(by_class.delivered, together.delivered, strict=True)
        assert all(_counted(a) == _counted(b) for a, b in pairs), case.name


def _counted(results: list[Tuple]) -> Counter[str]:
    return Counter(repr((each.values, each.label)) for each in results)
