"""The rule for what one delivery topic takes. Fan-out and SecAdmin share it (004 §3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.clearance import Clearance, covers_weakly
from catalog.label import Label


@dataclass(frozen=True, slots=True)
class Delivery:
    """The results that `clearance` covers and `beyond` does not.

    A whole class has no `beyond`. A difference class has one: the clearance that the subscriber's
    other topics serve already. `weak` says whether both are checked under weak semantics. If there
    are `ways`, the clearances of single roles, one of them must cover the result alone (exact
    match, 000 §5.2.1). The clearance is then what they have together.
    """

    clearance: Clearance
    weak: bool = False
    beyond: Clearance | None = None
    ways: tuple[Clearance, ...] = ()

    def takes(self, label: Label | None, sources: Label) -> bool:
        """Whether the topic takes a result with this label. No topic takes one without a label.

        `sources` holds all categories of the kind `source` (see `covers_weakly`).
        """
        if not self._covered(self.clearance, label, sources):
            return False
        if self.ways and not any(way.covers(label) for way in self.ways):
            return False
        return self.beyond is None or not self._covered(self.beyond, label, sources)

    def within(self, rights: Delivery) -> bool:
        """Whether `rights` covers everything that this topic can take. Its `beyond` does not count.

        A result may carry only one category of the clearance. And if some categories cover a
        result, then more categories cover it too, also under weak semantics. So it is enough to
        compare the categories, without knowing the results.
        """
        if self.weak and not rights.weak:
            return False
        alone, others = self.ways or (self.clearance,), rights.ways or (rights.clearance,)
        return all(any(one.bits & ~other.bits == 0 for other in others) for one in alone)

    def shows_as_much_as(self, other: Delivery) -> bool:
        """Whether both cover the same results, whatever other topics serve."""
        return (self.clearance, self.ways) == (other.clearance, other.ways)

    def _covered(self, clearance: Clearance, label: Label | None, sources: Label) -> bool:
        if self.weak:
            return covers_weakly(clearance, label, sources)
        return clearance.covers(label)
