"""The kinds of what a run withholds, as `RunStatus.counts` has them."""

from __future__ import annotations

LATE = "late"
LARGE = "too_large"
UNLABELLED = "without_label"
LOST = "lost_to_retention"


def refused_kind(stream_id: int) -> str:
    """The kind of what ingest put into the quarantine of that stream."""
    return f"refused_{stream_id}"
