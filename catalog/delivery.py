"""What one delivery topic takes: the predicate that the fan-out and SecAdmin share (004 §3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.clearance import Clearance, covers_weakly
from catalog.label import Label


@dataclass(frozen=True, slots=True)
class Delivery:
    """The results that `clearance` covers and `beyond` does not.

    A whole class has no `beyond`. A difference class has one: the clearance that the subscriber's
    other topics serve already. `weak` is the semantics of delivery, for both.
    """

    clearance: Clearance
    weak: bool = False
    beyond: Clearance | None = None

    def takes(self, label: Label | None, sources: Label) -> bool:
        """Whether a result with this label goes there; one without a label goes nowhere.

        `sources` holds the categories of the kind "source stream" (see `covers_weakly`).
        """
        if not self._covered(self.clearance, label, sources):
            return False
        return self.beyond is None or not self._covered(self.beyond, label, sources)

    def within(self, rights: Delivery) -> bool:
        """Whether all that it can take is covered by `rights`, whose `beyond` does not count.

        Each category of the clearance can stand in a result of its own, and what is covered by
        fewer categories is covered by more, weakly too. So the categories decide, and nothing has
        to be known about the results.
        """
        if self.weak and not rights.weak:
            return False
        return self.clearance.bits & ~rights.clearance.bits == 0

    def _covered(self, clearance: Clearance, label: Label | None, sources: Label) -> bool:
        if self.weak:
            return covers_weakly(clearance, label, sources)
        return clearance.covers(label)
