"""How Spark runs here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

_GENERATED_CODE = "spark.sql.codegen.wholeStage"


@contextmanager
def interpreting(spark: SparkSession) -> Iterator[None]:
    """Spark without making code for whole stages: a case runs once, and compiling it costs more."""
    before = str(spark.conf.get(_GENERATED_CODE))
    spark.conf.set(_GENERATED_CODE, "false")
    try:
        yield
    finally:
        spark.conf.set(_GENERATED_CODE, before)


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark that makes no code for whole stages while a test runs."""
    with interpreting(spark):
        yield spark
