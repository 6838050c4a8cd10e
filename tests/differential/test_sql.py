"""Each form of the SQL in grammar.md: one test id a query in `sql_cases.json`."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from secadmin.languages import parse_sql
from tests.differential.case import Outcome
from tests.differential.comparing import check
from tests.differential.conftest import interpreting
from tests.differential.engine import run_cases
from tests.differential.market import Market, case_of
from tests.lanes import is_long

_TEXTS: dict[str, str] = json.loads((Path(__file__).parent / "sql_cases.json").read_text())
_CASES = {name: case_of(name, parse_sql(text, Market())) for name, text in _TEXTS.items()}


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Outcome]:
    """What all queries give, from one job. The long lane runs it as production does."""
    with nullcontext() if is_long() else interpreting(spark):
        found = run_cases(spark, list(_CASES.values()))
    return dict(zip(_CASES, found, strict=True))


@pytest.mark.parametrize("name", _TEXTS)
def test_query(outcomes: dict[str, Outcome], name: str) -> None:
    check(_CASES[name], outcomes[name])
    assert outcomes[name].results
