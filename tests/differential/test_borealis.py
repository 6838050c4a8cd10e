"""The boxes of the Borealis XML, in the document of grammar.md's shape."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from secadmin.languages import parse_borealis
from tests.differential.comparing import check_all
from tests.differential.market import Market, case_of

_DOCUMENT = (Path(__file__).parent / "borealis_case.xml").read_text()


def test_every_box(spark: SparkSession) -> None:
    outputs = parse_borealis(_DOCUMENT, Market()).outputs
    assert len(outputs) == 5
    check_all(spark, [case_of(name, plan) for name, plan in outputs])
