"""Where the fan-out by delivery class stands in a run."""

from __future__ import annotations

from enum import StrEnum


class Placement(StrEnum):
    """Where results, or the tuples that they come from, are divided among the classes.

    SINK: behind the plan. Each result exists once, and goes to who may see all that went into it
    (semantics `strong` and `weak`; 004 §3.2). SOURCES: above each source, before the first node
    that keeps state. So each class gets what the plan gives over the tuples that the class may see
    (semantics `view`: the partitioned windows of 000 §5.2, the stream shepherd of 001 §4.1).
    """

    SINK = "sink"
    SOURCES = "sources"
