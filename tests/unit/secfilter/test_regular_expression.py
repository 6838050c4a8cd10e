"""Several expressions over one text and one pattern, which Spark may give one matcher to."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from secfilter.regular_expression import regexp_group, regexp_like

PATTERN = "(&|^)(id|no)=([^&]*)"
TEXTS = ["id=1&no=2", "x=1&no=é😀&id=3", "no=", "", "nothing", "&id=7", None]


def test_all_expressions_of_a_row_begin_at_its_first_character(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(text,) for text in TEXTS], "text string")
    text = fn.col("text")
    found = regexp_like(text, PATTERN)
    groups = [regexp_group(text, PATTERN, number) for number in (0, 1, 2, 3, 2)]
    once_more = fn.when(groups[2] == "no", found).otherwise(regexp_like(text, PATTERN))
    rows = frame.where(found | ~found | found.isNull()).select(found, *groups, once_more, found)
    assert [tuple(row) for row in rows.collect()] == [_expected(each) for each in TEXTS]


def _expected(text: str | None) -> tuple[object, ...]:
    if text is None:
        return (None,) * 8
    match = re.search(PATTERN, text)
    if match is None:
        return (False, *[None] * 5, False, False)
    return (True, *(match[number] for number in (0, 1, 2, 3, 2)), True, True)
