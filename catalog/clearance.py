"""Clearances: the categories that a subject may see, and the one check of the platform."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.label import Label


@dataclass(frozen=True, slots=True)
class Clearance:
    """The set of categories that a subject may see."""

    bits: int = 0

    @classmethod
    def of(cls, *categories: int) -> Clearance:
        """The clearance that holds exactly these categories (bit positions)."""
        return cls(Label.of(*categories).bits)

    def covers(self, label: Label | None) -> bool:
        """Whether a tuple with this label is visible: label ⊆ clearance. False without a label."""
        return label is not None and label.bits & ~self.bits == 0

    def cut_to(self, reach: Label) -> Clearance:
        """The part of the clearance that matters if tuples carry only categories of `reach`."""
        return Clearance(self.bits & reach.bits)


def covers_weakly(clearance: Clearance, label: Label | None, sources: Label) -> bool:
    """Weak semantics (004 §3.2): one source category is enough, but all other categories count.

    `sources` holds all categories of the kind `source`. A label without any of them is checked as
    under strong semantics.
    """
    if label is None:
        return False
    others_held = label.bits & ~sources.bits & ~clearance.bits == 0
    own_sources = label.bits & sources.bits
    return others_held and (own_sources == 0 or own_sources & clearance.bits != 0)
