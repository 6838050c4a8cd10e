"""Namespaces of objects, and the one answer for an object that is absent or hidden."""

from __future__ import annotations

from enum import StrEnum

from catalog.errors import NotFound
from catalog.permission import ObjectKind


class Namespace(StrEnum):
    """Names are unique in a namespace. Streams and outputs share one: a query can name either."""

    SYSTEM = "system"
    SCHEMA = "schema"
    RELATION = "relation"
    QUERY = "query"
    CONFLICT_CLASS = "conflict-class"


_NAMESPACES = {
    ObjectKind.SYSTEM: Namespace.SYSTEM,
    ObjectKind.SCHEMA: Namespace.SCHEMA,
    ObjectKind.STREAM: Namespace.RELATION,
    ObjectKind.OUTPUT: Namespace.RELATION,
    ObjectKind.QUERY: Namespace.QUERY,
    ObjectKind.CONFLICT_CLASS: Namespace.CONFLICT_CLASS,
}
_WORDS = {Namespace.RELATION: "stream or output", Namespace.CONFLICT_CLASS: "conflict class"}

SYSTEM_NAME = "system"


def namespace_of(kind: ObjectKind) -> Namespace:
    """The namespace that objects of this kind are named in."""
    return _NAMESPACES[kind]


def not_found(place: ObjectKind | Namespace, name: str) -> NotFound:
    """The error for an object that is absent or hidden. Its words never say which of the two.

    The words depend only on the namespace. Otherwise the answers for "stream x" and "output x"
    would show which of them a hidden x is.
    """
    namespace = place if isinstance(place, Namespace) else namespace_of(place)
    return NotFound(f"there is no {_WORDS.get(namespace, namespace.value)} {name[:80]!a}")
