"""Semantics `isolated` batch by batch: a class gets what `view` gives it, and learns no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.differential.hidden_inputs import NUMBER, QUERIES, over, topics


@pytest.mark.long
@pytest.mark.parametrize("seed", range(NUMBER))
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
