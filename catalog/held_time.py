"""How far the results of a plan stay behind the time of its sources.

The time of an output moves by ticks, if ticks move that of all its sources. So a query has to know
which results are still to come when its watermark is W. A tuple that is still to come is not older
than W. But a join keeps tuples, and gives their pairs later; so does a pattern with its rows. And a
window over pairs closes later than W, because the engine waits for all pairs.
"""

from __future__ import annotations

from catalog.checked_plan import CheckedNode
from catalog.plan import Aggregate, Join, JoinKind, Match


def held_ms(each: CheckedNode) -> int:
    """How far the event time of a result that is still to come may be before the watermark (ms)."""
    below = max((held_ms(given) for given in each.inputs), default=0)
    match each.node:
        case Match() as match:
            return below + match.held_ms
        case Join() as join:
            return _of_pairs(join, each)
        case Aggregate():
            # A window is closed when the time of its input has passed it.
            return max(map(_behind_ms, each.inputs))
        case _:
            # An instant is complete when the watermark passes it.
            return below


def _of_pairs(join: Join, each: CheckedNode) -> int:
    """A pair has the event time of one side: the left one, if it has a left tuple for sure.

    That tuple waits until no partner can come any more.
    """
    side = each.inputs[1 if join.kind is JoinKind.RIGHT else 0]
    wait = -join.lower_ms if join.kind.keeps_right else join.upper_ms
    return max(held_ms(side), max(map(_behind_ms, each.inputs)) + wait)


def _behind_ms(each: CheckedNode) -> int:
    """How far the engine's time above a node is behind the watermark (ms).

    Above a join it is that of the oldest tuples which either side still keeps.
    """
    below = max(map(_behind_ms, each.inputs), default=0)
    if isinstance(each.node, Join):
        return below + max(0, each.node.upper_ms, -each.node.lower_ms)
    return below
