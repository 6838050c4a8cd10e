"""Registers role expressions, and settles whom their new categories concern."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.label_texts import Registered, register
from secadmin.control.query_rights import computed_from
from secadmin.control.settlement import Settlement, of_objects


def register_texts(
    settlement: Settlement, stream: int, texts: Iterable[str], user: int | None = None
) -> None:
    """Register these texts of a stream, which `user` sends, or the label rule has (None).

    Raises InvalidInput for the first that cannot be registered.
    """
    settle_registered(
        settlement,
        stream,
        [register(settlement.change.session, stream, text, user) for text in texts],
    )


def settle_registered(settlement: Settlement, stream: int, found: Iterable[Registered]) -> None:
    """Settle whom these texts concern.

    A new clause closes the quarantine to whoever does not hold it. A role that no clause of the
    stream has named before is part of the rights of its holders from now on.
    """
    found = list(found)
    concerned: set[int] = set()
    if any(each.new_clauses for each in found):
        concerned.add(stream)
    if any(each.new_roles for each in found):
        concerned |= computed_from(settlement.change.session, stream)
    if concerned:
        settlement.settle(of_objects(*concerned))
