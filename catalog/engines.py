"""The engines of a deployment: the processes in which runs run, each with a name.

The engine `ingest` runs the ingest of all streams. Queries run in `query-1`, `query-2` and so on.
`probation` runs one execution at a time: one whose engine died (`catalog.probation`).
"""

from __future__ import annotations

INGEST = "ingest"
PROBATION = "probation"
FIRST = "query-1"


def query_engines(count: int) -> tuple[str, ...]:
    """The names of the engines that queries are assigned to; `count` is 1 or more."""
    return tuple(f"query-{number}" for number in range(1, count + 1))


def all_engines(count: int) -> tuple[str, ...]:
    """The names of all engines of a deployment with so many query engines."""
    return (INGEST, *query_engines(count), PROBATION)
