"""The names of runs."""

from __future__ import annotations

_INGEST, _QUERY = "ingest-", "query-"


def ingest_run_name(group: int) -> str:
    """The name of the run that serves a group of streams."""
    return f"{_INGEST}{group}"


def query_run_name(output_id: int) -> str:
    """The name of the run that computes an output."""
    return f"{_QUERY}{output_id}"


def output_of(run: str) -> int | None:
    """The output that the run of that name computes; None for a run of ingest."""
    return int(run.removeprefix(_QUERY)) if run.startswith(_QUERY) else None
