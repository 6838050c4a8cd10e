"""The whole fan-out, records for Kafka's sink: each class's topic holds what the oracle says."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from pyspark.sql import Row, SparkSession

from catalog.label import Label
from catalog.plan import Plan, Source
from catalog.plan_check import check_plan, event_time, is_public, lateness_ms, output_schema, reach
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, QueryRun
from secadmin.languages import parse_sql
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from tests.differential.case import Case, Outcome
from tests.differential.comparing import check
from tests.differential.engine import reader, stored
from tests.differential.market import DECLARED, SOURCES, Market, case_of
from tests.differential.test_declared import LOWERED
from tests.differential.wire import decode, decode_json
from tests.oracle.values import Tuple

_JOIN = """
SELECT t.ts, t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol
AND q.at BETWEEN t.ts - INTERVAL '1' MINUTE AND t.ts + INTERVAL '1' MINUTE
"""
_UNION = 'SELECT * FROM trades UNION ALL SELECT * FROM "trades-eu"'
_MERGED = f"""
SELECT symbol, sum(volume) AS total FROM ({_UNION}) GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol
"""
PLANS: dict[str, Plan] = {
    "union": parse_sql(_UNION, Market()),
    "union, then aggregate": parse_sql(_MERGED, Market()),
    "join": parse_sql(_JOIN, Market()),
    "public": parse_sql("SELECT * FROM news UNION ALL SELECT ts FROM trades", Market()),
    "declared": LOWERED["sum"],
    "source": Source(DECLARED),
}


def _run(case: Case) -> QueryRun:
    plan = case.plan
    check_plan(plan)
    output = Relation(
        object_id=9,
        name="result",
        kind=RelationKind.OUTPUT,
        schema=output_schema(plan),
        event_time=event_time(plan),
        lateness_ms=lateness_ms(plan),
        reach=reach(plan),
        public=is_public(plan),
    )
    classes = tuple(
        FanOutClass(str(index), each.clearance, each.weak)
        for index, each in enumerate(case.classes)
    )
    return QueryRun("result", plan, output, classes, True, SOURCES, {})


def _header(row: Row, index: int, key: str) -> str:
    header = row["headers"][index]
    assert header["key"] == key
    return bytes(header["value"]).decode()


@pytest.mark.parametrize("name", PLANS)
def test_fan_out(spark: SparkSession, name: str) -> None:
    case = case_of(name, PLANS[name])
    run = _run(case)
    kept = stored(spark, [case])
    compiled = compile_plan(case.plan, reader(kept, 0))
    topics: dict[str, list[Row]] = defaultdict(list)
    for row in fan_out(compiled, run, "key").collect():
        topics[row["topic"]].append(row)
    inside = topics.pop(run.output.topic)
    schema = run.output.schema
    results = [Tuple(decode(row["value"], schema), _label(row)) for row in inside]
    delivered = tuple(
        [
            Tuple(decode_json(row["value"], schema), _label(row))
            for row in topics.pop(each.topic, [])
        ]
        for each in run.classes
    )
    assert not topics
    check(case, Outcome(results, delivered))


def _label(row: Row) -> Label | None:
    return Label.from_wire(_header(row, 0, "label"))


def test_a_result_has_one_id_of_its_own_in_every_topic(spark: SparkSession) -> None:
    case = case_of("union", PLANS["union"])
    kept = stored(spark, [case])
    rows = fan_out(compile_plan(case.plan, reader(kept, 0)), _run(case), "key").collect()
    everything = {_header(row, 1, "id"): row["value"] for row in rows if row["topic"] == "1"}
    assert len(everything) == sum(row["topic"] == "1" for row in rows)
    for row in rows:
        if row["topic"] in {each.topic for each in _run(case).classes}:
            assert everything[_header(row, 1, "id")] == row["value"]
            assert [header["key"] for header in row["headers"]] == ["label", "id"]
            assert isinstance(json.loads(row["value"]), dict)
