"""Label layouts: which category is in which bit of which word of an execution's label columns.

Categories of the whole platform may be far apart. An execution meets few of them, so its columns
and its state have a bit only for each of these. Spark's state has a fixed number of columns. So an
execution has more bits from the start than it needs, and new categories take the free ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.label import WORD_BITS, Label

RESERVED = 32
"""How many bits are free, at least, when a layout begins."""


@dataclass(frozen=True, slots=True)
class LabelLayout:
    """The layout of an execution. It only grows: no category ever changes its place.

    The category at position `n` is in bit `n % 64` of word `n // 64`. There are `words` words.
    """

    categories: tuple[int, ...]
    words: int

    def __post_init__(self) -> None:
        if len(set(self.categories)) != len(self.categories):
            raise ValueError("a category is in a layout twice")
        if not len(self.categories) <= WORD_BITS * self.words:
            raise ValueError("a layout has more categories than bits")

    @classmethod
    def of(cls, reach: Label) -> LabelLayout:
        """A new layout for these categories, with free bits for others."""
        categories = reach.categories()
        return cls(categories, -(-(len(categories) + RESERVED) // WORD_BITS))

    def grown(self, reach: Label) -> LabelLayout | None:
        """The layout with these categories as well, or None if they do not fit into its words."""
        new = tuple(each for each in reach.categories() if each not in self.categories)
        if len(self.categories) + len(new) > WORD_BITS * self.words:
            return None
        return LabelLayout(self.categories + new, self.words)

    def holds(self, label: Label) -> bool:
        """Whether the layout has a bit for each category of the label."""
        return set(label.categories()) <= set(self.categories)

    def packed(self, label: Label) -> Label:
        """The label in the layout's bits. Categories that the layout does not have are left out."""
        held = (at for at, category in enumerate(self.categories) if label.bits >> category & 1)
        return Label.of(*held)

    def packing(self, reach: Label) -> tuple[Move, ...]:
        """How the words of a label within `reach` are moved into the layout's words."""
        return _moves(
            (each, at) for at, each in enumerate(self.categories) if reach.bits >> each & 1
        )

    def unpacking(self) -> tuple[Move, ...]:
        """How the layout's words are moved into the words of a label."""
        return _moves(enumerate(self.categories))


@dataclass(frozen=True, slots=True)
class Move:
    """Some bits of the word `source` go to the word `target`, `shift` bits higher (or lower, < 0).

    `mask` has these bits, signed as in Spark.
    """

    source: int
    target: int
    shift: int
    mask: int


def _moves(bits: Iterable[tuple[int, int]]) -> tuple[Move, ...]:
    """The moves of single bits, each from one position to another one, as few as there can be."""
    masks: dict[tuple[int, int, int], Label] = {}
    for old, new in bits:
        shift = new % WORD_BITS - old % WORD_BITS
        place = (old // WORD_BITS, new // WORD_BITS, shift)
        masks[place] = masks.get(place, Label()) | Label.of(old % WORD_BITS)
    return tuple(Move(*place, mask.word(0)) for place, mask in masks.items())
