"""What one user may take of the platform."""

from __future__ import annotations

from dataclasses import dataclass

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
