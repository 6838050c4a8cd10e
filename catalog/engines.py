"""The names of the engines of a deployment. An engine is a process in which runs run.

The engine `ingest` runs the ingest of all streams. Queries run in `query-1`, `query-2` and so on.
`probation` runs one suspected execution at a time (`catalog.probation`).

`levels` is no process. What belongs there waits until an engine of its level is free
(`catalog.level_engines`).
"""

from __future__ import annotations

INGEST = "ingest"
PROBATION = "probation"
LEVELS = "levels"
FIRST = "query-1"


def query_engines(count: int) -> tuple[str, ...]:
    """The names of the engines to which queries are assigned. `count` is 1 or more."""
    return tuple(f"query-{number}" for number in range(1, count + 1))


def all_engines(count: int) -> tuple[str, ...]:
    """The names of all engines of a deployment with `count` query engines."""
    return (INGEST, *query_engines(count), PROBATION)
