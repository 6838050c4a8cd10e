"""Labels: sets of categories as bit vectors (004 §3.2).

A category is a bit position, and is never reused. There may be more than 64 categories: here a
label is a Python integer, and on the wire it has as many 64-bit words as it needs, up to 1,024.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

WORD_BITS = 64
_WORD_MASK = (1 << WORD_BITS) - 1
_SIGN = 1 << (WORD_BITS - 1)
MAX_WORDS = 1024
MAX_CATEGORIES = MAX_WORDS * WORD_BITS
"""All categories that there can ever be: a label with a higher one could not be read again."""


def _signed(word: int) -> int:
    return word - (1 << WORD_BITS) if word & _SIGN else word


@dataclass(frozen=True, slots=True)
class Label:
    """The set of categories that went into a tuple. `bits` is 0 or more, and 0 is public."""

    bits: int = 0

    def __post_init__(self) -> None:
        if self.bits < 0:
            raise ValueError("a label's bits are non-negative")

    @classmethod
    def of(cls, *categories: int) -> Label:
        """The label that holds exactly these categories (bit positions)."""
        return cls(reduce(lambda bits, category: bits | (1 << category), categories, 0))

    def __or__(self, other: Label) -> Label:
        """The combined label. A result that is derived from both carries the categories of both."""
        return Label(self.bits | other.bits)

    def categories(self) -> tuple[int, ...]:
        """The bit positions in the label, lowest first."""
        return tuple(i for i in range(self.bits.bit_length()) if self.bits >> i & 1)

    def within(self, other: Label) -> bool:
        """Whether the other label has every category of this label."""
        return self.bits & ~other.bits == 0

    def word(self, index: int) -> int:
        """The 64-bit word at `index` (0 is the lowest), signed as in Spark and on the wire."""
        return _signed(self.bits >> (WORD_BITS * index) & _WORD_MASK)

    def word_indexes(self) -> tuple[int, ...]:
        """The indexes of the words that hold at least one category."""
        return tuple(sorted({category // WORD_BITS for category in self.categories()}))

    def to_wire(self) -> str:
        """The text of the Kafka header: 64-bit words, lowest first, signed decimal, with commas.

        Raises ValueError for a label that `from_wire` would not read.
        """
        if self.bits.bit_length() > MAX_CATEGORIES:
            raise ValueError(f"a label has no category above {MAX_CATEGORIES - 1}")
        count = max(1, -(-self.bits.bit_length() // WORD_BITS))
        return ",".join(str(self.word(index)) for index in range(count))

    @classmethod
    def from_wire(cls, text: str | bytes | None) -> Label | None:
        """Read the header. Returns None if it is no exact label: nobody may see that record."""
        if isinstance(text, bytes):
            try:
                text = text.decode("ascii")
            except UnicodeDecodeError:
                return None
        if not text:
            return None
        parts = text.split(",")
        if len(parts) > MAX_WORDS or not all(_is_word(part) for part in parts):
            return None
        return cls(sum((int(part) & _WORD_MASK) << (WORD_BITS * i) for i, part in enumerate(parts)))


def _is_word(part: str) -> bool:
    digits = part[1:] if part.startswith("-") else part
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    # Accept only the form that `to_wire` writes: no leading zeros, no minus zero.
    return str(int(part)) == part and -_SIGN <= int(part) < _SIGN


PUBLIC = Label(0)


def combine(labels: Iterable[Label]) -> Label:
    """The union of the labels. The union of no labels is the public label."""
    return reduce(Label.__or__, labels, PUBLIC)
