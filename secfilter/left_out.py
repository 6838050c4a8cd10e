"""What subscribers learn of tuples that a query left out, because its state is full.

Such a tuple comes beside the results, goes through the plan without being computed, and through the
same fan-out. So it reaches those alone whose clearance covers its label. The label is that of the
tuple, with all that the windows of the query can hold: that they are full reveals every tuple in
them. Where each class has windows of its own, these hold nothing that the class may not see.

A record of it has no key and no value. Its header `left-out` says why, which window it is (from 1,
in the order of the query) and when the tuple happened. The header `id` tells repeats apart.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from secfilter.nested import TIME_FORMAT

LINEAGE = "__left_lineage"
"""The lineage of a tuple that was left out. It is empty for a result."""


def is_left_out() -> Column:
    """Whether a row that an operator gives is a tuple that was left out (never NULL)."""
    return fn.col(LINEAGE) != fn.lit("")


def left_out_lineage(window: Column) -> Column:
    """The lineage of the record of it. A tuple may be left out of several windows."""
    return fn.concat_ws(":", fn.lit("left out"), window.cast("string"), fn.col(LINEAGE))


def left_out_text(reason: str, time: Column, window: Column) -> Column:
    """What the record of a left-out tuple says, as JSON. NULL for a result."""
    told = fn.struct(
        fn.lit(reason).alias("reason"),
        (window + fn.lit(1)).alias("window"),
        time.alias("time"),
    )
    text = fn.to_json(told, {"timestampFormat": TIME_FORMAT, "timeZone": "UTC"})
    return fn.when(is_left_out(), text)
