"""`analyse` checks a plan once, from its sources up. All other code uses its result."""

from __future__ import annotations

from catalog.checked_plan import CheckedNode, CheckedPlan, StateKind
from catalog.errors import InvalidInput
from catalog.moving_check import RELATION
from catalog.plan import (
    Emission,
    Node,
    Plan,
    Ranked,
    SessionWindow,
    Source,
    Windowed,
    inputs,
)
from catalog.plan_check import check_node
from catalog.relation import RelationKind
from catalog.schema import check_definition
from catalog.upserts import refusal_of_single_upserts, require_whole


def analyse(plan: Plan) -> CheckedPlan:
    """Check the plan and compute what is known of each node. Raises InvalidInput if it is wrong."""
    return complete(analyse_node(plan.root), plan.emission)


def analyse_node(root: Node) -> CheckedNode:
    """Check a node and all nodes below it. Raises InvalidInput if a node is wrong.

    A node that is the input of several nodes is checked once. There is no recursion, so a plan that
    is too deep is refused like any other wrong plan.
    """
    done: dict[int, CheckedNode] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        missing = [below for below in inputs(node) if id(below) not in done]
        if missing:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        if id(node) not in done:
            given = tuple(done[id(below)] for below in inputs(node))
            done[id(node)] = check_node(node, given)
    return done[id(root)]


def complete(root: CheckedNode, emission: Emission) -> CheckedPlan:
    """The plan that sends the results of `root` with this emission.

    Raises InvalidInput if it cannot run.
    """
    if isinstance(root.node, Windowed):
        raise InvalidInput("only an aggregate reads windows")
    if root.is_changing:
        raise InvalidInput(RELATION)
    require_whole(root.node)
    if isinstance(root.node, Source) and root.node.relation.keys:
        raise refusal_of_single_upserts(root.node)
    for each in root.walk():
        if isinstance(each.node, Ranked) and each.node.number and each.node.limit is None:
            raise InvalidInput(
                "ROW_NUMBER needs a limit, because each row that comes may change all others: "
                f"keep the first ones with WHERE {each.node.number} <= 10 around the query"
            )
    if emission is Emission.UPDATES:
        _check_updates(root)
    check_definition(root.schema)
    return CheckedPlan(root, emission)


def _check_updates(root: CheckedNode) -> None:
    """With EMIT UPDATES a plan has windows only, and it reads streams only.

    The engine sends all results of a query in one way. An output of another query may repeat a
    tuple after a crash, and the engine removes repeats only if each result is sent once.
    """
    require_windows(root)
    for each in root.walk():
        if each.state in (StateKind.PAIRS, StateKind.MOVING, StateKind.MATCHES):
            raise InvalidInput(MIXED)
        if each.state is StateKind.GROUPS and any(below.keeps_state for below in each.inputs):
            raise InvalidInput(
                "EMIT UPDATES goes with one window between a source and its output; leave it out, "
                "or add the inner part as a query of its own"
            )
        match each.node:
            case Windowed(_, SessionWindow()):
                raise InvalidInput("EMIT UPDATES goes with TUMBLE and HOP, and not with SESSION")
            case Source(relation) if relation.kind is not RelationKind.STREAM:
                raise InvalidInput(
                    f"EMIT UPDATES reads streams, and {relation.name} is an output; "
                    "leave it out, or read the streams themselves"
                )


def require_windows(root: CheckedNode) -> None:
    """Raise InvalidInput if the plan has no window, so that EMIT UPDATES has nothing to update."""
    if not any(each.state is StateKind.GROUPS for each in root.walk()):
        raise InvalidInput(
            "EMIT UPDATES goes with windows; without one, each result is sent at once"
        )


MIXED = (
    "EMIT UPDATES goes for all windows of a query, and for no join, moving window or pattern; "
    "add the other part as a query of its own"
)
