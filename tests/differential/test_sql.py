"""Each form of the SQL in grammar.md: one test id a query in `sql_cases.json`.

The examples of catalog/SPEC.md run here too. `tests/unit/catalog/test_spec.py` shows that the
oracle gives what they say. The sample lane runs every tenth one (SQL_STEP): a job of Spark takes a
second for each.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pytest
from pyspark.sql import SparkSession

from secadmin.languages import parse_sql
from tests.differential.case import Outcome
from tests.differential.comparing import check
from tests.differential.engine import run_cases
from tests.differential.market import Market, case_of
from tests.lanes import number_of
from tests.spec import SpecMarket, examples

_Case = TypeVar("_Case")
_STEP = number_of("SQL_STEP", sample=10, long=1)


def _every_few(named: dict[str, _Case]) -> dict[str, _Case]:
    return dict(islice(named.items(), 0, None, _STEP))


_TEXTS: dict[str, str] = _every_few(
    json.loads((Path(__file__).parent / "sql_cases.json").read_text())
)
_CASES = {name: case_of(name, parse_sql(text, Market())) for name, text in _TEXTS.items()}
# EMIT UPDATES needs a query that goes on (test_updates.py).
_SPEC = {
    each.name: each.case(parse_sql(each.sql, SpecMarket()).plan)
    for each in examples()
    if not each.refused and not each.sql.endswith("EMIT UPDATES")
}
_SPEC |= {
    f"{each.name}, view": each.view_case(parse_sql(each.sql, SpecMarket()).plan)
    for each in examples()
    if each.viewed()
}
_SPEC |= {
    f"{each.name}, exact": each.exact_case(parse_sql(each.sql, SpecMarket()).plan)
    for each in examples()
    if each.exact()
}
_SPEC = _every_few(_SPEC)


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Outcome]:
    """What all queries give, from one job."""
    cases = _CASES | _SPEC
    return dict(zip(cases, run_cases(spark, list(cases.values())), strict=True))


@pytest.mark.parametrize("name", _TEXTS)
def test_query(outcomes: dict[str, Outcome], name: str) -> None:
    check(_CASES[name], outcomes[name])
    assert outcomes[name].results


@pytest.mark.parametrize("name", _SPEC)
def test_example_of_the_specification(outcomes: dict[str, Outcome], name: str) -> None:
    check(_SPEC[name], outcomes[name])
