"""The queries of NEXMark on Spark, over another project's data, against plain Python."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.label import Label
from catalog.plan import sources
from catalog.schema import Type, held_as
from secadmin.languages import parse_sql
from tests.bench.plain_nexmark import PLAIN, as_json, plain_results, read_bids
from tests.differential.case import Case, Outcome, Record
from tests.differential.comparing import check
from tests.differential.conftest import interpreting
from tests.differential.engine import run_cases
from tests.differential.named_streams import NamedStreams
from tests.differential.nexmark_answers import ANSWERS, Data
from tests.differential.wire import encode
from tests.nexmark import QUERIES, STREAMS
from tests.oracle.values import Value

VECTORS = Path(__file__).parents[3] / "shared" / "vectors" / "nexmark"
SOURCE = Label.of(3)
pytestmark = pytest.mark.long


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


@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_query_beside_which_it_is_measured_gives_the_same(
    interpreted: SparkSession, data: Data, name: str
) -> None:
    names = STREAMS["bid"].schema.names
    rows = [(encode(tuple(bid[key] for key in names)).encode(),) for bid in data["bid"]]
    bids = read_bids(interpreted.createDataFrame(rows, "value binary"))
    found = [json.loads(row.value) for row in as_json(plain_results(name, bids)).collect()]
    wanted = Counter(tuple(map(_json_value, row)) for row in ANSWERS[name](data))
    assert Counter(tuple(map(_json_value, row.values())) for row in found) == wanted


def _json_value(value: Value) -> Value:
    """The value as Spark writes it into JSON, a double with some digits."""
    if isinstance(value, datetime):
        return f"{value.isoformat(timespec='milliseconds')}Z"
    return round(value, 6) if isinstance(value, float) else value


def _rounded(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(round(each, 6) if isinstance(each, float) else each for each in values)
