"""What one user may take of the platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UserLimits:
    """The limits of each user; settings `[limits.user]`.

    `running_queries` and `reads` (every place where a plan reads a stream or output) are of the
    running queries that it owns, `accesses` the Kafka users that it has at once. The two rates, in
    bytes a second, are of each such Kafka user, at each broker.
    """

    running_queries: int = 100
    reads: int = 400
    accesses: int = 1_000
    produced_bytes_per_s: int = 32 * MIB
    fetched_bytes_per_s: int = 64 * MIB

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if type(value) is not int or value < 1:
                raise ValueError(f"limits.user.{limit.name}, which is a whole number from 1 on")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> UserLimits:
        """Those of the settings' table. Raises ValueError for one that does not exist."""
        for name in data:
            if name not in {limit.name for limit in fields(cls)}:
                raise ValueError(f"limits.user.{name}, which does not exist")
        return cls(**data)
