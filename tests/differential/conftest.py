"""How Spark runs here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest
from pyspark.sql import SparkSession

from tests.lanes import is_long

_GENERATED_CODE = "spark.sql.codegen.wholeStage"


def interpreting(spark: SparkSession) -> AbstractContextManager[None]:
    """Spark without making code for whole stages: a case runs once, and compiling it costs more."""
    return _whole_stages(spark, "false")


@contextmanager
def _whole_stages(spark: SparkSession, generated: str) -> Iterator[None]:
    before = str(spark.conf.get(_GENERATED_CODE))
    spark.conf.set(_GENERATED_CODE, generated)
    try:
        yield
    finally:
        spark.conf.set(_GENERATED_CODE, before)


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """In the sample lane, Spark that makes no code for whole stages; in the long one, as ever."""
    with nullcontext() if is_long() else interpreting(spark):
        yield spark


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark that makes code for whole stages, as in production."""
    with _whole_stages(spark, "true"):
        yield spark


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark that makes no code for whole stages while a test runs."""
    with interpreting(spark):
        yield spark
