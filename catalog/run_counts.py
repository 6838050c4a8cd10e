"""The kinds of what a run counts (mostly tuples that it withholds), as in `RunStatus.counts`."""

from __future__ import annotations

LATE = "late"
LARGE = "too_large"
UNLABELLED = "without_label"
# A moving window holds as many tuples as it may.
NO_ROOM = "window_full"
# A pattern holds as many rows, or has as many open ways to match them, as it may.
PATTERN_FULL = "pattern_full"
LOST = "lost_to_retention"
# How often the state began anew, because the labels needed more words than it had.
ANEW = "state_begun_anew"


def refused_kind(stream_id: int) -> str:
    """The kind of the records that ingest put into the quarantine of that stream."""
    return f"refused_{stream_id}"
