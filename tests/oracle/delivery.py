"""What each clearance class gets of a query's results."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.clearance import Clearance, covers_weakly
from catalog.label import Label
from tests.oracle.values import Tuple


def deliver_strong(results: Iterable[Tuple], clearance: Clearance) -> list[Tuple]:
    """The results all of whose categories the class holds."""
    return [each for each in results if clearance.covers(each.label)]


def deliver_weak(results: Iterable[Tuple], clearance: Clearance, sources: Label) -> list[Tuple]:
    """The results of which the class holds one source category, if any, and all other ones."""
    return [each for each in results if covers_weakly(clearance, each.label, sources)]
