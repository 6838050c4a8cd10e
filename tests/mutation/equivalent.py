"""Mutants that no test notices because they decide the same, each with why. For the rest, see run.

Named as `tests.mutation.run` prints them: what stands there, and what a mutant has instead.
"""

from __future__ import annotations

_SAME_MEMORY = "with __dict__ an instance takes more memory, and is the same value"
_NEVER_NEGATIVE = "bits are non-negative, and so is what is left of them"

LABEL = {
    "if not (digits.isascii() and digits.isdigit() and len(digits) <= 19): -> "
    "if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):": (
        "a number of 20 digits is outside the range of a word, which is looked at next"
    ),
    "return word - (1 << WORD_BITS) if word & _SIGN else word -> "
    "return word - (1 << WORD_BITS) if word // _SIGN else word": (
        "a word has 64 bits, so it is at least 2**63 exactly where its highest bit is set"
    ),
    "return self.bits & ~other.bits == 0 -> return self.bits & ~other.bits <= 0": _NEVER_NEGATIVE,
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
}

CLEARANCE = {
    "return label is not None and label.bits & ~self.bits == 0 -> "
    "return label is not None and label.bits & ~self.bits <= 0": _NEVER_NEGATIVE,
    "others_held = label.bits & ~sources.bits & ~clearance.bits == 0 -> "
    "others_held = label.bits & ~sources.bits & ~clearance.bits <= 0": _NEVER_NEGATIVE,
    "return others_held and (own_sources == 0 or own_sources & clearance.bits != 0) -> "
    "return others_held and (own_sources <= 0 or own_sources & clearance.bits != 0)": (
        _NEVER_NEGATIVE
    ),
    "return others_held and (own_sources == 0 or own_sources & clearance.bits != 0) -> "
    "return others_held and (own_sources == 0 or own_sources & clearance.bits > 0)": (
        _NEVER_NEGATIVE
    ),
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
}

EQUIVALENT = {"catalog/label.py": LABEL, "catalog/clearance.py": CLEARANCE}
