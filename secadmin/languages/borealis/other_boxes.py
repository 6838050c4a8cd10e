"""Boxes of Borealis that the platform does not have, and what to write instead."""

from __future__ import annotations

_TABLES = "the platform has no tables; join with the stream that fills the table"
_LOCKS = "it is for tables, and the platform has none"
_SHEDDING = "no tuple is left out when there is much to do; leave the box out"
_FAULTS = "the platform itself goes on after a failure without loss"
_REVISIONS = "a tuple is never revised"
_ARRAYS = "diagrams have no arrays here"
_WAITING = "tuples are not kept until something happens; use a join with buffer sizes"

REFUSED = {
    **dict.fromkeys(("select", "insert", "update", "delete"), _TABLES),
    **dict.fromkeys(("lock", "unlock"), _LOCKS),
    **dict.fromkeys(("window_drop", "random_drop"), _SHEDDING),
    "sunion": f"{_FAULTS}; use union",
    "sjoin": f"{_FAULTS}; use join",
    **dict.fromkeys(("soutput", "scontrol"), f"{_FAULTS}; leave the box out"),
    "revisionfilter": f"{_REVISIONS}; use filter",
    "revisionmap": f"{_REVISIONS}; use map",
    "revisionaggregate": f"{_REVISIONS}; use aggregate",
    "aurorajoin": "use join with order-by VALUES",
    "joinstatic": _TABLES,
    **dict.fromkeys(("waitfor", "LRWaitFor"), _WAITING),
    "delay_sel": "it leaves out tuples at random; leave the box out",
    **dict.fromkeys(
        ("filter_array", "map_frame", "regrid", "merge", "render", "concatenate"), _ARRAYS
    ),
}
