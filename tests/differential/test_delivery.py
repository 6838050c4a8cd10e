"""The whole fan-out, records for Kafka's sink: each class's topic holds what the oracle says."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.plan import Source
from secadmin.languages import parse_sql
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from tests.differential.case import Class
from tests.differential.comparing import check_all
from tests.differential.delivered import header, run_of
from tests.differential.engine import reader, run_cases, stored
from tests.differential.market import (
    COMPANY,
    DECLARED,
    EU,
    QUOTES,
    TRADES,
    TRADES_AGGREGATED,
    Market,
    case_of,
)
from tests.differential.test_declared import LOWERED
from tests.lanes import sampled
from tests.plans import AnyPlan

_JOIN = """
SELECT t.ts, t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol
AND q.at BETWEEN t.ts - INTERVAL '1' MINUTE AND t.ts + INTERVAL '1' MINUTE
"""
_UNION = 'SELECT * FROM trades UNION ALL SELECT * FROM "trades-eu"'
_MERGED = f"""
SELECT symbol, sum(volume) AS total FROM ({_UNION}) GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol
"""
EVERY = (TRADES, EU, QUOTES, COMPANY, TRADES_AGGREGATED)
PLANS: dict[str, AnyPlan] = {
    "union": parse_sql(_UNION, Market()),
    "union, then aggregate": parse_sql(_MERGED, Market()),
    "join": parse_sql(_JOIN, Market()),
    "public": parse_sql("SELECT * FROM news UNION ALL SELECT ts FROM trades", Market()),
    "declared": LOWERED["sum"],
    "source": Source(DECLARED),
}


@pytest.mark.parametrize("name", sampled(PLANS, 2))
def test_fan_out(spark: SparkSession, name: str) -> None:
    check_all(spark, [case_of(name, PLANS[name])])


CHAINS = {
    "streams one by one": ((TRADES,), (TRADES, EU), (TRADES, EU, COMPANY), EVERY),
    "from nothing": ((), (QUOTES, COMPANY), EVERY),
    "all at once": ((TRADES_AGGREGATED,), EVERY),
}


@pytest.mark.parametrize("name", sampled(PLANS, 2, first=1))
def test_topics_of_one_subscription_share_nothing_and_lack_nothing(
    spark: SparkSession, name: str
) -> None:
    """What rights C get, and then the differences up to C', is what rights C' get."""
    chains = [[Clearance.of(*held) for held in chain] for chain in CHAINS.values()]
    classes = [
        Class(held, beyond=beyond)
        for chain in chains
        for beyond, held in zip([None, *chain], chain, strict=False)
    ]
    classes.append(Class(Clearance.of(*EVERY)))
    (outcome,) = run_cases(spark, [case_of(name, PLANS[name], classes)])
    delivered = list(outcome.delivered)
    whole = delivered.pop()
    for chain in chains:
        parts = [delivered.pop(0) for _ in chain]
        together = Counter(each for part in parts for each in part)
        assert together == Counter(whole), "each once: a repeated one would count twice"


def test_a_result_has_one_id_of_its_own_in_every_topic(spark: SparkSession) -> None:
    case = case_of("union", PLANS["union"])
    kept = stored(spark, [case])
    rows = fan_out(
        compile_plan(analyse(case.plan), reader(kept, 0, case), case.reach_of, case.users_of),
        run_of(case),
        "key",
    ).collect()
    everything = {header(row, 1, "id"): row["value"] for row in rows if row["topic"] == "1"}
    assert len(everything) == sum(row["topic"] == "1" for row in rows)
    for row in rows:
        if row["topic"] in {each.topic for each in run_of(case).classes}:
            assert everything[header(row, 1, "id")] == row["value"]
            assert [header["key"] for header in row["headers"]] == ["label", "id"]
            assert isinstance(json.loads(row["value"]), dict)
