"""The kinds of category: how a stream gets its bits, and what gives them to a subject.

No other kind exists. Nobody gets a category of an unknown kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from catalog.permission import Permission


class CategoryKind(StrEnum):
    """The kind of a category of a stream. The catalog stores the value."""

    SOURCE = "source"
    AGGREGATED = "aggregated"
    ROLE_CLAUSE = "role clause"
    """One clause of the role expressions of a stream's tuples (`catalog.role_clauses`)."""
    ROLE = "role"
    """A role that a clause names. It is in no label, except in floors (`catalog.floors`)."""
    COMPANY = "company"
    """A company of a conflict class (`catalog.conflict_class`)."""
    TRUSTED = "trusted"
    """Several companies of a conflict class, or all of them: T in a level."""


@dataclass(frozen=True, slots=True)
class KindEntry:
    """The rules for all categories of a kind (004 §3.2).

    Attributes:
        after: The distance of its bit from the stream's first bit, or None if a stream does not
            begin with one. Bits are never reused.
        needs_declaration: Whether only a stream with a declared aggregate has one.
        given_by: A subject that holds one of these permissions on the stream has the category.
        kept_from_senders: Those of `given_by` that give nothing to users that may SEND there.

    No grant gives a role clause: it belongs to whoever has one of its roles active. Nor does one
    give a company: users have levels.
    """

    after: int | None
    needs_declaration: bool
    given_by: frozenset[Permission]
    kept_from_senders: frozenset[Permission]


_BY_ROLES = KindEntry(
    after=None, needs_declaration=False, given_by=frozenset(), kept_from_senders=frozenset()
)
_BY_LEVELS = _BY_ROLES
KINDS: Mapping[CategoryKind, KindEntry] = MappingProxyType(
    {
        CategoryKind.SOURCE: KindEntry(
            after=0,
            needs_declaration=False,
            given_by=frozenset({Permission.READ_TUPLE}),
            kept_from_senders=frozenset(),
        ),
        CategoryKind.AGGREGATED: KindEntry(
            after=1,
            needs_declaration=True,
            given_by=frozenset({Permission.READ_TUPLE, Permission.READ_AGGREGATE}),
            kept_from_senders=frozenset({Permission.READ_AGGREGATE}),
        ),
        CategoryKind.ROLE_CLAUSE: _BY_ROLES,
        CategoryKind.ROLE: _BY_ROLES,
        CategoryKind.COMPANY: _BY_LEVELS,
        CategoryKind.TRUSTED: _BY_LEVELS,
    }
)
