"""The level of a tuple as a text, from the words of its label (001 §3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.conflict_class import NOTHING, TRUSTED, ConflictClass
from catalog.label import WORD_BITS, Label
from secfilter.columns import label_column


def level_of(classes: Sequence[ConflictClass], reach: Label) -> Column:
    """The level, with a part for each of the classes. The label is within `reach`."""
    parts = [_part(each, reach) for each in classes]
    commas = [fn.lit(", ")] * len(parts)
    spread = [column for pair in zip(parts, commas, strict=True) for column in pair][:-1]
    return fn.concat(fn.lit("["), *spread, fn.lit("]"))


def _part(each: ConflictClass, reach: Label) -> Column:
    own = Label(each.categories.bits & reach.bits)
    counts = [_count(own, index) for index in own.word_indexes()]
    count = reduce(lambda a, b: a + b, counts, fn.lit(0))
    trusted = _has(each.trusted, reach)
    text = fn.when(trusted | (count > 1), TRUSTED).when(count == 0, NOTHING)
    for name, at in each.companies.items():
        if reach.bits >> at & 1:
            text = text.when(_has(at, reach), name)
    return text


def _count(own: Label, index: int) -> Column:
    mask = fn.lit(own.word(index)).cast("bigint")
    return fn.bit_count(fn.col(label_column(index)).bitwiseAND(mask))


def _has(category: int, reach: Label) -> Column:
    if not reach.bits >> category & 1:
        return fn.lit(False)
    word, bit = divmod(category, WORD_BITS)
    mask = fn.lit(Label.of(bit).word(0)).cast("bigint")
    return fn.col(label_column(word)).bitwiseAND(mask) != fn.lit(0)
