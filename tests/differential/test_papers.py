"""The continuous queries of the papers 000 and 001, as written: answers by hand, oracle, Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Outcome
from tests.differential.comparing import check
from tests.differential.conftest import interpreting
from tests.differential.engine import run_cases
from tests.differential.named_streams import NamedStreams
from tests.oracle.values import Tuple
from tests.spec import Example, examples_of

CATEGORIES = {"log": 6, "hr": 70, "bp": 71, "one": 7, "two": 72, "doctors": 8, "nurses": 73}
_S, _N, _T = Type.STRING, Type.BIGINT, Type.TIMESTAMP
_LOG = {"serviceId": _S, "msgType": _S, "sender": _S, "receiver": _S, "timestamp": _T}


def stream(number: int, name: str, event_time: str, **types: Type) -> Relation:
    schema = Schema(tuple(Attribute(each, kind) for each, kind in types.items()))
    return Relation(number, name, RelationKind.STREAM, schema, event_time, 0)


STREAMS = {
    each.name: each
    for each in (
        stream(21, "MessageLog", "timestamp", **_LOG, outcome=_S),
        stream(22, "HRStr", "ts", ts=_T, patID=_N, devID=_S, pulseRate=_N),
        stream(23, "BPStr", "ts", ts=_T, patID=_N, devID=_S, systolic=_N, diastolic=_N),
    )
}
EVERY = Label.of(*CATEGORIES.values())
CLASSES = (
    Class(Clearance(EVERY.bits)),
    *(
        Class(Clearance.of(*(CATEGORIES[each] for each in held)))
        for held in (
            ("log", "one"),
            ("hr", "bp", "doctors"),
            ("log", "two"),
            ("hr", "bp", "doctors", "nurses"),
        )
    ),
)


EXAMPLES = {
    each.section: each
    for each in examples_of(
        Path(__file__).with_name("paper_queries.md").read_text("utf-8"), CATEGORIES
    )
}


def case(example: Example) -> Case:
    found = example.case(parse_sql(example.sql, NamedStreams(STREAMS)).plan)
    reaches = {each.object_id: EVERY for each in STREAMS.values()}
    return replace(found, reaches=reaches, classes=CLASSES)


CASES = {name: case(example) for name, example in EXAMPLES.items()}


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Outcome]:
    """What all queries give, from one job."""
    with interpreting(spark):
        found = run_cases(spark, list(CASES.values()))
    return dict(zip(CASES, found, strict=True))


def test_all_queries_are_here() -> None:
    queries = {"Q1", "Q2", "Q4", "Q5", "Q6", "Q7", "Qi", "CQ1"}
    assert EXAMPLES.keys() == {*queries, "Table1"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_query_of_a_paper_gives_what_is_found_by_hand(
    outcomes: dict[str, Outcome], name: str
) -> None:
    check(CASES[name], outcomes[name])
    wanted = EXAMPLES[name].results(parse_sql(EXAMPLES[name].sql, NamedStreams(STREAMS)).schema)
    assert Counter(map(_plain, outcomes[name].results)) == Counter(map(_plain, wanted))
    assert wanted


def _plain(each: Tuple) -> tuple[object, ...]:
    return (each.label, *each.values)
