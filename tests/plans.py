"""Plans in short: what tests of every part build them with."""

from __future__ import annotations

from catalog.analysis import analyse
from catalog.checked_plan import CheckedPlan
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Emission,
    Node,
    Plan,
    SessionWindow,
    Window,
    Windowed,
)

# What a test can give for a plan: a node alone stands for a plan that sends closed windows.
AnyPlan = Node | Plan | CheckedPlan


def whole(plan: AnyPlan) -> Plan:
    """The plan that is meant."""
    match plan:
        case Plan():
            return plan
        case CheckedPlan():
            return plan.plan
        case _:
            return Plan(plan)


def checked(plan: AnyPlan) -> CheckedPlan:
    """The plan that is meant, analysed. Raises InvalidInput for a wrong one."""
    return plan if isinstance(plan, CheckedPlan) else analyse(whole(plan))


def updating(root: Node) -> Plan:
    """The plan with EMIT UPDATES."""
    return Plan(root, Emission.UPDATES)


def grouped(
    node: Node,
    window: Window | SessionWindow,
    keys: tuple[Column, ...],
    aggregations: tuple[Aggregation, ...],
) -> Aggregate:
    """An aggregate over windows over a node."""
    return Aggregate(Windowed(node, window), keys, aggregations)
