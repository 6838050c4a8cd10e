"""Counts how many independent senders a group of tuples has.

State keeps a mask (BIGINT) with one bit for each of them. So it has the same size however many
tuples a sender sends.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.runs import SenderNumbers
from secfilter.columns import SENDER

_NOBODY = -1


def mask_of(numbers: SenderNumbers, known: Column) -> Column:
    """The mask of the independent senders of a group's tuples. Only tuples with `known` count."""
    pairs = [(_NOBODY, 0), *((sender, _bit(numbers[sender])) for sender in sorted(numbers))]
    bits = fn.create_map(*(fn.lit(part).cast("bigint") for pair in pairs for part in pair))
    return fn.bit_or(fn.when(known, fn.try_element_at(bits, fn.col(SENDER))))


def count_of(mask: Column, numbers: SenderNumbers) -> Column:
    """How many independent senders are in the mask. One that was left out since then is none."""
    counting = fn.lit(reduce(or_, map(_bit, numbers.values()), 0)).cast("bigint")
    return fn.bit_count(fn.coalesce(mask, fn.lit(0).cast("bigint")).bitwiseAND(counting))


def _bit(number: int) -> int:
    """The word with this bit alone, signed as in Spark."""
    return Label.of(number).word(0)
