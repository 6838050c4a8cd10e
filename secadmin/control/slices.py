"""Long lists in parts. A database takes only so many parameters in one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")
MOST = 5_000
"""SQLite takes 32,766 parameters in a statement, PostgreSQL 65,535."""


def slices(values: Sequence[_T], most: int | None = None) -> Iterator[Sequence[_T]]:
    """The values in their order, in parts of at most `most` values."""
    step = most or MOST
    return (values[start : start + step] for start in range(0, len(values), step))
