"""The names of runs."""

from __future__ import annotations

_INGEST, _QUERY = "ingest-", "query-"


def ingest_run_name(group: int) -> str:
    """The name of the run that serves a group of streams."""
    return f"{_INGEST}{group}"


def query_run_name(execution_id: int, class_id: int | None = None) -> str:
    """The name of the run of an execution, or of its run for one class (`Placement.APART`)."""
    own = f"{_QUERY}{execution_id}"
    return own if class_id is None else f"{own}-{class_id}"


def execution_of(run: str) -> int | None:
    """The execution to which the run of that name belongs; None for a run of ingest."""
    return int(run.removeprefix(_QUERY).split("-")[0]) if run.startswith(_QUERY) else None


def class_of(run: str) -> int | None:
    """The class for which alone the run of that name is; None if it is for all of them."""
    parts = run.removeprefix(_QUERY).split("-") if run.startswith(_QUERY) else []
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else None
