"""Who may see a tuple, as a condition on its label words (`catalog.delivery`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.runs import FanOutClass
from secfilter.lab import label_word


def in_layout(class_: FanOutClass, layout: LabelLayout) -> FanOutClass:
    """The class with its clearances in the bits of the layout.

    A bit that no category has yet is in no clearance. So what carried it would reach nobody.
    """

    def packed(clearance: Clearance) -> Clearance:
        return Clearance(layout.packed(Label(clearance.bits)).bits)

    beyond = None if class_.beyond is None else packed(class_.beyond)
    ways = tuple(map(packed, class_.ways))
    return replace(class_, clearance=packed(class_.clearance), beyond=beyond, ways=ways)


def visible_to(class_: FanOutClass, words: Sequence[int], sources: Label) -> Column:
    """Whether the class takes the tuple, by the rule of `Delivery.takes`. NULL means no.

    The class and the categories of the kind `source` are in the bits of the label words.
    """
    taken = _visible(class_.clearance, class_.weak, words, sources)
    if class_.ways:
        alone = [_covered(way, words, Label(0)) for way in class_.ways]
        taken = taken & reduce(lambda a, b: a | b, alone)
    if class_.beyond is None:
        return taken
    return taken & ~_visible(class_.beyond, class_.weak, words, sources)


def _visible(clearance: Clearance, weak: bool, words: Sequence[int], sources: Label) -> Column:
    """Whether the clearance covers the label, or covers it weakly."""
    if weak:
        return _weakly_visible(clearance, words, sources)
    return _covered(clearance, words, Label(0))


def _covered(clearance: Clearance, words: Sequence[int], but: Label) -> Column:
    """Whether the clearance has every category of the label that is not in `but`."""
    held = Label(clearance.bits | but.bits)
    outside = [_masked(index, ~held.word(index)) for index in words]
    return reduce(lambda a, b: a & b, [bits == fn.lit(0) for bits in outside])


def _weakly_visible(clearance: Clearance, words: Sequence[int], sources: Label) -> Column:
    """Weak semantics: one source category is enough, but all others count (004 §3.2)."""
    readable = Label(clearance.bits & sources.bits)
    none = [_masked(index, sources.word(index)) == fn.lit(0) for index in words]
    some = [_masked(index, readable.word(index)) != fn.lit(0) for index in words]
    no_source = reduce(lambda a, b: a & b, none)
    one_source = reduce(lambda a, b: a | b, some)
    return _covered(clearance, words, sources) & (no_source | one_source)


def _masked(index: int, mask: int) -> Column:
    return label_word(index).bitwiseAND(fn.lit(mask).cast("bigint"))
