"""The queries of NEXMark on Spark, over another project's data, against plain Python."""

from __future__ import annotations

import csv
import re
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.label import Label
from catalog.plan import sources
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type, held_as
from secadmin.languages import parse_sql
from tests.differential.case import Case, Outcome, Record
from tests.differential.comparing import check
from tests.differential.conftest import interpreting
from tests.differential.engine import run_cases
from tests.differential.named_streams import NamedStreams
from tests.differential.nexmark_answers import ANSWERS, Data
from tests.oracle.values import Value

VECTORS = Path(__file__).parents[3] / "shared" / "vectors" / "nexmark"
PAGE = Path(__file__).parents[2] / "docs" / "nexmark.md"
QUERIES = dict(re.findall(r"## (q\d+)\n.*?```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
SOURCE = Label.of(3)
_S, _N, _T = Type.STRING, Type.BIGINT, Type.TIMESTAMP
pytestmark = pytest.mark.long


def stream(number: int, called: str, /, **types: Type) -> Relation:
    schema = Schema(tuple(Attribute(each, kind) for each, kind in types.items()))
    return Relation(number, called, RelationKind.STREAM, schema, "date_time", 0)


_PERSON = {"id": _N, "name": _S, "email_address": _S, "credit_card": _S, "city": _S, "state": _S}
_AUCTION = {"id": _N, "item_name": _S, "description": _S, "initial_bid": _N, "reserve": _N}
_BID = {"auction": _N, "bidder": _N, "price": _N, "channel": _S, "url": _S}
STREAMS = {
    each.name: each
    for each in (
        stream(31, "person", **_PERSON, date_time=_T, extra=_S),
        stream(
            32, "auction", **_AUCTION, date_time=_T, expires=_T, seller=_N, category=_N, extra=_S
        ),
        stream(33, "bid", **_BID, date_time=_T, extra=_S),
    )
}


def value(text: str, kind: Type) -> Value:
    if kind is Type.TIMESTAMP:
        return datetime.fromisoformat(text)
    return int(text) if kind is Type.BIGINT else text


@pytest.fixture(scope="module")
def data() -> Data:
    if not VECTORS.is_dir():
        pytest.skip("the data of NEXMark are not beside the repository")
    found = {}
    for name, each in STREAMS.items():
        types = {attribute.name: held_as(attribute.type) for attribute in each.schema.attributes}
        with (VECTORS / f"{name}.csv").open(newline="") as file:
            found[name] = [
                {key: value(text, types[key]) for key, text in row.items()}
                for row in csv.DictReader(file)
            ]
    return found


def case(name: str, data: Data) -> Case:
    plan = parse_sql(QUERIES[name], NamedStreams(STREAMS)).plan
    records = {
        each.name: [
            Record(tuple(row[key] for key in each.schema.names), SOURCE.to_wire())
            for row in data[each.name]
        ]
        for each in sources(plan)
    }
    return Case(name, plan, records, {each.object_id: SOURCE for each in STREAMS.values()})


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, data: Data) -> dict[str, tuple[Case, Outcome]]:
    """What all queries give, from one job."""
    cases = {name: case(name, data) for name in QUERIES}
    with interpreting(spark):
        found = run_cases(spark, list(cases.values()))
    return dict(zip(cases, zip(cases.values(), found, strict=True), strict=True))


def test_each_query_of_the_page_has_an_answer() -> None:
    assert QUERIES.keys() == ANSWERS.keys()


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_what_plain_python_finds(
    outcomes: dict[str, tuple[Case, Outcome]], data: Data, name: str
) -> None:
    found = outcomes[name][1].results
    wanted = Counter(map(_rounded, ANSWERS[name](data)))
    assert Counter(_rounded(each.values) for each in found) == wanted
    assert all(each.label == SOURCE for each in found) and wanted


@pytest.mark.parametrize("name", QUERIES)
def test_the_oracle_says_the_same(outcomes: dict[str, tuple[Case, Outcome]], name: str) -> None:
    check(*outcomes[name])


def _rounded(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(round(each, 6) if isinstance(each, float) else each for each in values)
