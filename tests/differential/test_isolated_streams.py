"""Semantics `isolated` batch by batch: a class gets what `view` gives it, and learns no more.

NON_INTERFERENCE_CASES sets how many pairs of inputs are compared for each query.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.differential.hidden_inputs import QUERIES, over, topics
from tests.lanes import number_of

_NUMBER = number_of("NON_INTERFERENCE_CASES", sample=1, long=20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(_NUMBER))
@pytest.mark.parametrize("name", QUERIES)
def test_hidden_inputs_change_nothing_of_an_isolated_class(
    spark: SparkSession, tmp_path: Path, name: str, seed: int
) -> None:
    """Its run gives what semantics `view` gives the class, and nothing hidden changes it."""
    hidden = seed * 2 + 1
    alone = topics(over(spark, name, tmp_path / "alone", seed, hidden, alone=True), "0")
    shared = topics(over(spark, name, tmp_path / "view", seed, 0), "0")
    assert alone == shared
    assert any(alone), "an empty topic shows nothing"
