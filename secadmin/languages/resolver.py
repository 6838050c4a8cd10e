"""The resolver: the only way from a name in a query text to a relation."""

from __future__ import annotations

from typing import Protocol

from catalog.errors import InvalidInput, NotFound, Position
from catalog.relation import Relation


class Resolver(Protocol):
    """Looks up relations for one caller, and checks the caller's rights at each look-up."""

    def relation(self, name: str) -> Relation:
        """The stream or output of that name.

        Raises NotFound if it does not exist or the caller may not see it; the words are the same.
        Raises Denied if the caller may see it, but may not read it in a query.
        """
        ...


class UnknownRelation(InvalidInput):
    """A query names a relation that does not exist for its author; `position` is the name's."""


def look_up(resolver: Resolver, name: str, position: Position) -> Relation:
    """The relation that the text names at this position. Raises UnknownRelation.

    The message is always the same, because a relation that the author may not see does not exist.
    """
    try:
        return resolver.relation(name)
    except NotFound:
        raise UnknownRelation(f"no stream or output {name[:80]!r}", position) from None
