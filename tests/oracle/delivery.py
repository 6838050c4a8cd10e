"""What each delivery class gets of a query's results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from catalog.clearance import Clearance
from catalog.label import Label
from tests.oracle.values import Tuple


def deliver_strong(results: Iterable[Tuple], clearance: Clearance) -> list[Tuple]:
    """The results all of whose categories the class holds."""
    held = _held(clearance)
    return [
        each for each in results if each.label is not None and set(each.label.categories()) <= held
    ]


def deliver_exactly(results: Iterable[Tuple], roles: Iterable[Clearance]) -> list[Tuple]:
    """The results all of whose categories one of the roles holds by itself, each once."""
    held = [_held(each) for each in roles]
    return [
        each
        for each in results
        if each.label is not None and any(set(each.label.categories()) <= own for own in held)
    ]


def seen_by(clearance: Clearance, tables: Mapping[str, Sequence[Tuple]]) -> dict[str, list[Tuple]]:
    """Each relation for a class that has a view of its own. What it may not see is hidden there."""
    found = {}
    for name, given in tables.items():
        seen = {id(each) for each in deliver_strong(given, clearance)}
        found[name] = [
            each if id(each) in seen else replace(each, label=Label(), hidden=True)
            for each in given
        ]
    return found


def deliver_weak(results: Iterable[Tuple], clearance: Clearance, sources: Label) -> list[Tuple]:
    """The results of which the class holds one source category, if any, and all other ones."""
    held, kinds = _held(clearance), set(sources.categories())
    found = []
    for each in results:
        if each.label is None:
            continue
        carried = set(each.label.categories())
        own = carried & kinds
        if carried - kinds <= held and (not own or own & held):
            found.append(each)
    return found


def _held(clearance: Clearance) -> set[int]:
    return set(Label(clearance.bits).categories())


def leave_out(results: Iterable[Tuple], delivered: Iterable[Tuple]) -> list[Tuple]:
    """The results that are not among those delivered elsewhere: what a difference class gets."""
    elsewhere = {id(each) for each in delivered}
    return [each for each in results if id(each) not in elsewhere]
