"""The only way from a name in a query text to what it stands for."""

from __future__ import annotations

from typing import Protocol

from catalog.errors import InvalidInput, NotFound, Position
from catalog.relation import Relation


class Resolver(Protocol):
    """Looks up relations for one caller, and authorizes each look-up."""

    def relation(self, name: str) -> Relation:
        """The stream or output of that name.

        Raises NotFound, in the same words for what does not exist and what may not be seen;
        Denied where the caller may see it but not read it in a query.
        """
        ...


class UnknownRelation(InvalidInput):
    """A query names a relation that does not exist for its author; `position` says where."""


def look_up(resolver: Resolver, name: str, position: Position) -> Relation:
    """The relation that stands at this place of the text. Raises UnknownRelation.

    The words are always these, whatever NotFound says: what may not be seen does not exist.
    """
    try:
        return resolver.relation(name)
    except NotFound:
        raise UnknownRelation(f"no stream or output {name[:80]!r}", position) from None
