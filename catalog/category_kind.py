"""The kinds of category: how a stream gets its bits, and which permissions give them.

A kind that is not here does not exist: a category of another kind is given to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from catalog.permission import Permission


class CategoryKind(StrEnum):
    """What a category is of a stream; the catalog stores the value."""

    SOURCE = "source"
    AGGREGATED = "aggregated"


@dataclass(frozen=True, slots=True)
class KindEntry:
    """What holds for all categories of a kind (004 §3.2).

    Attributes:
        after: How many bits behind the stream's first one its bit is. Bits are never reused.
        needs_declaration: Whether only a stream with a declared aggregate has one.
        given_by: Whoever holds one of these on the stream holds the category.
        kept_from_senders: Those of `given_by` that give nothing to users who may SEND there.
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
