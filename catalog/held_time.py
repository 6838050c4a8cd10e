"""How far the results of a plan stay behind the time of its sources.

The time of an output moves by ticks, if ticks move that of all its sources. So a query has to know
which results are still to come when its watermark is W. A tuple that is still to come is not older
than W. But a join keeps tuples, and gives their pairs later; so does a pattern with its rows.
"""

from __future__ import annotations

from catalog.checked_plan import CheckedNode
from catalog.plan import Join, Match


def held_ms(each: CheckedNode) -> int:
    """How far the event time of a result that is still to come may be before the watermark (ms)."""
    below = max((held_ms(given) for given in each.inputs), default=0)
    return below + _own_ms(each)


def _own_ms(each: CheckedNode) -> int:
    match each.node:
        case Match(within_ms=within_ms):
            return within_ms
        case Join(kind=kind, lower_ms=lower_ms, upper_ms=upper_ms):
            # A pair has the event time of one side: the left one, if it has a left tuple for sure.
            # That tuple waits until no partner can come any more.
            return max(0, -lower_ms if kind.keeps_right else upper_ms)
        case _:
            # A window is closed, and an instant is complete, when the watermark passes it.
            return 0
