"""The kinds of category: how a stream gets its bits, and which permissions give them.

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


@dataclass(frozen=True, slots=True)
class KindEntry:
    """The rules for all categories of a kind (004 §3.2).

    Attributes:
        after: The distance of its bit from the stream's first bit. Bits are never reused.
        needs_declaration: Whether only a stream with a declared aggregate has one.
        given_by: A subject that holds one of these permissions on the stream has the category.
        kept_from_senders: Those of `given_by` that give nothing to users that may SEND there.
    """

    after: int
    needs_declaration: bool
    given_by: frozenset[Permission]
    kept_from_senders: frozenset[Permission]


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
    }
)
