"""`analyse`: a plan is looked at once, from its sources up; all others use what it found."""

from __future__ import annotations

from catalog.checked_plan import CheckedNode, CheckedPlan, StateKind
from catalog.errors import InvalidInput
from catalog.plan import Emission, Node, Plan, Source, Windowed, inputs
from catalog.plan_check import check_node
from catalog.relation import RelationKind
from catalog.schema import check_definition


def analyse(plan: Plan) -> CheckedPlan:
    """The plan with all that is known of each node. Raises InvalidInput for a wrong plan."""
    return complete(analyse_node(plan.root), plan.emission)


def analyse_node(root: Node) -> CheckedNode:
    """A node and all below it, checked. Raises InvalidInput where a node is wrong.

    A value that several nodes hold as their input is looked at once. Without recursion: a plan that
    is too deep is refused like any other wrong one.
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
    """The query that sends the results of `root` so. Raises InvalidInput where it cannot run."""
    if isinstance(root.node, Windowed):
        raise InvalidInput("only an aggregate reads windows")
    if emission is Emission.UPDATES:
        _check_updates(root)
    check_definition(root.schema)
    return CheckedPlan(root, emission)


def _check_updates(root: CheckedNode) -> None:
    """With EMIT UPDATES there is nothing but windows, straight over streams.

    The engine sends a query's results in one way; and what another query's output repeats after a
    crash it only leaves out of what is sent once.
    """
    require_windows(root)
    for each in root.walk():
        if each.state is StateKind.PAIRS:
            raise InvalidInput(MIXED)
        match each.node:
            case Source(relation) if relation.kind is not RelationKind.STREAM:
                raise InvalidInput(
                    f"EMIT UPDATES reads streams, and {relation.name} is an output; "
                    "leave it out, or read the streams themselves"
                )


def require_windows(root: CheckedNode) -> None:
    """Raise InvalidInput where there is nothing that EMIT UPDATES could give updates of."""
    if not any(each.state is StateKind.GROUPS for each in root.walk()):
        raise InvalidInput(
            "EMIT UPDATES goes with windows; without one, each result is sent at once"
        )


MIXED = (
    "EMIT UPDATES goes for all windows of a query, and for no join; "
    "add the other part as a query of its own"
)
