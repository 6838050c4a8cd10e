"""What names of objects are unique in, and the one answer for what is not there to be seen."""

from __future__ import annotations

from enum import StrEnum

from catalog.errors import NotFound
from catalog.permission import ObjectKind


class Namespace(StrEnum):
    """Streams and outputs share one namespace, since a query can name either."""

    SYSTEM = "system"
    SCHEMA = "schema"
    RELATION = "relation"
    QUERY = "query"


_NAMESPACES = {
    ObjectKind.SYSTEM: Namespace.SYSTEM,
    ObjectKind.SCHEMA: Namespace.SCHEMA,
    ObjectKind.STREAM: Namespace.RELATION,
    ObjectKind.OUTPUT: Namespace.RELATION,
    ObjectKind.QUERY: Namespace.QUERY,
}
_WORDS = {Namespace.RELATION: "stream or output"}

SYSTEM_NAME = "system"


def namespace_of(kind: ObjectKind) -> Namespace:
    """The namespace that objects of this kind are named in."""
    return _NAMESPACES[kind]


def not_found(place: ObjectKind | Namespace, name: str) -> NotFound:
    """The error for an object that is absent or hidden: the words never tell which of the two.

    They depend on the namespace alone, or asking for "stream x" and "output x" would tell which of
    them a hidden x is.
    """
    namespace = place if isinstance(place, Namespace) else namespace_of(place)
    return NotFound(f"there is no {_WORDS.get(namespace, namespace.value)} {name[:80]!a}")
