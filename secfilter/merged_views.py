"""Merges the results of the views of a class's roles: exact match (000 §5.2.1).

Each role of a class has a view of its own: what the plan gives over the tuples that this role may
see. A subscriber gets the results of all views, and one that several views give comes once.

Two results of one window and one group are the same if their labels are equal. The first role sees
all tuples of the first result, and its label is their union. If the second role covers this label,
it sees these tuples, too. The same holds the other way round. So both windows hold the same tuples,
and nobody has to compare them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as fn

from catalog.label_layout import LabelLayout
from catalog.runs import VIEW_BITS
from secfilter.columns import CLASS, ID, label_column
from secfilter.lab import encode_label
from secfilter.label_words import unpacked_words, words

_TWIN, _PLACE = "__twin", "__place"


def merged(results: DataFrame, layout: LabelLayout) -> DataFrame:
    """The results of all views, each once: as often as in the view that has it most often.

    It merges the results of each micro-batch. Spark refuses this for a stream, which has no end. So
    Spark's check for operations that streams do not support comes before (`secfilter.order`). What
    views give of the same tuples comes in one batch, because time closes their windows together. A
    pattern can be decided later in one view than in another. Then the match comes again, with the
    same id.
    """
    same = [ID, *map(label_column, words(layout))]
    twins = Over.partitionBy(CLASS, *same).orderBy(ID)
    views = Over.partitionBy(_class(), *same, _TWIN).orderBy(CLASS)
    # One task has all of them, so nothing is sent around.
    numbered = results.coalesce(1).withColumn(_TWIN, fn.row_number().over(twins))
    once = numbered.withColumn(_PLACE, fn.row_number().over(views)).where(fn.col(_PLACE) == 1)
    # Results of one window that differ have other labels, so they have other ids.
    label = encode_label(unpacked_words(layout))
    twin = fn.col(_TWIN).cast("string")
    lineage = fn.concat_ws(":", _class().cast("string"), fn.col(ID), label, twin)
    return once.withColumn(ID, lineage).drop(_TWIN, _PLACE)


def _class() -> Column:
    """The id of the class of a view."""
    return fn.shiftright(fn.col(CLASS), VIEW_BITS)
