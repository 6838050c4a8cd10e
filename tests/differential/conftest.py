"""How Spark runs here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

_GENERATED_CODE = "spark.sql.codegen.wholeStage"


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark without making code for whole stages: a case runs once, and compiling it costs more."""
    before = str(spark.conf.get(_GENERATED_CODE))
    spark.conf.set(_GENERATED_CODE, "false")
    yield spark
    spark.conf.set(_GENERATED_CODE, before)
