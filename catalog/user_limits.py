"""The limits of what one user may use of the platform."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UserLimits:
    """The limits of each user (settings `[limits.user]`).

    `running_queries` is for the running queries that the user owns. `reads` is for the places where
    their plans read a stream or an output. `streams_and_outputs` is for those that the user owns,
    also of stopped queries: each has topics. What is removed counts until its topics are deleted.
    This limit does not bound a user that holds CHANGE SYSTEM. `accesses` is for the accesses that
    the user has at once. The two rates, in bytes per second, are for each principal at each broker.
    """

    running_queries: int = 100
    reads: int = 400
    streams_and_outputs: int = 1_000
    accesses: int = 1_000
    produced_bytes_per_s: int = 32 * MIB
    fetched_bytes_per_s: int = 64 * MIB
