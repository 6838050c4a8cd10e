"""The kinds of tuples and records that a run withholds, as in `RunStatus.counts`."""

from __future__ import annotations

LATE = "late"
LARGE = "too_large"
UNLABELLED = "without_label"
LOST = "lost_to_retention"


def refused_kind(stream_id: int) -> str:
    """The kind of the records that ingest put into the quarantine of that stream."""
    return f"refused_{stream_id}"
