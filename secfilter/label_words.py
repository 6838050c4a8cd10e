"""Moves labels between their own words and the words of an execution's layout."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.label_layout import LabelLayout, Move
from secfilter.columns import label_column, words_of


def packed_words(layout: LabelLayout, reach: Label) -> list[Column]:
    """The layout's words of a tuple, from the words of its label, which is within `reach`."""
    moves = layout.packing(reach)
    # A word without a category is 0, but no constant. Otherwise Spark would leave it out of the
    # state of a join, and the state would have another shape when the word is used.
    nothing = _word(words_of(reach)[0]).bitwiseAND(_bigint(0))
    return [_joined(moves, index, nothing).alias(label_column(index)) for index in words(layout)]


def unpacked_words(layout: LabelLayout) -> dict[int, Column]:
    """The words of a tuple's label, from the layout's words. A word that is left out is 0."""
    moves = layout.unpacking()
    return {move.target: _joined(moves, move.target, _bigint(0)) for move in moves}


def with_floor(frame: DataFrame, layout: LabelLayout, floor: Label) -> DataFrame:
    """The results with the categories of the floor added to their labels."""
    if not floor.bits:
        return frame
    packed = layout.packed(floor)
    raised = {
        label_column(index): _word(index).bitwiseOR(_bigint(packed.word(index)))
        for index in words(layout)
    }
    return frame.withColumns(raised)


def words(layout: LabelLayout) -> tuple[int, ...]:
    """The indexes of the layout's words."""
    return tuple(range(layout.words))


def _joined(moves: tuple[Move, ...], target: int, nothing: Column) -> Column:
    parts = [_moved(move) for move in moves if move.target == target]
    return reduce(lambda a, b: a.bitwiseOR(b), parts) if parts else nothing


def _moved(move: Move) -> Column:
    bits = _word(move.source).bitwiseAND(_bigint(move.mask))
    if move.shift < 0:
        return fn.shiftrightunsigned(bits, -move.shift)
    return fn.shiftleft(bits, move.shift) if move.shift else bits


def _word(index: int) -> Column:
    return fn.col(label_column(index))


def _bigint(value: int) -> Column:
    return fn.lit(value).cast("bigint")
