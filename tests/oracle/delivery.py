"""What each delivery class gets of a query's results."""

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


def leave_out(results: Iterable[Tuple], delivered: Iterable[Tuple]) -> list[Tuple]:
    """The results that are not among those delivered elsewhere: what a difference class gets."""
    elsewhere = {id(each) for each in delivered}
    return [each for each in results if id(each) not in elsewhere]
