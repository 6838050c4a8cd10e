"""The names of runs."""

from __future__ import annotations

_INGEST, _QUERY = "ingest-", "query-"


def ingest_run_name(group: int) -> str:
    """The name of the run that serves a group of streams."""
    return f"{_INGEST}{group}"


def query_run_name(execution_id: int) -> str:
    """The name of the run of an execution."""
    return f"{_QUERY}{execution_id}"


def execution_of(run: str) -> int | None:
    """The execution that the run of that name is; None for a run of ingest."""
    return int(run.removeprefix(_QUERY)) if run.startswith(_QUERY) else None
