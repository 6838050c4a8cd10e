"""All measurements, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from deploy.stack import Stack
from tests.bench.aggregate import aggregate
from tests.bench.at_rest import at_rest
from tests.bench.cost import cost
from tests.bench.crowded_classes import crowded_classes
from tests.bench.figure import Figure
from tests.bench.fused import fused
from tests.bench.kept import keep
from tests.bench.label_mask import label_mask
from tests.bench.latency import end_to_end, kafka_alone
from tests.bench.many_streams import scale
from tests.bench.many_subscribers import revocation_from_many
from tests.bench.many_windows import many_windows
from tests.bench.moving import moving
from tests.bench.nexmark import nexmark
from tests.bench.operators import operators
from tests.bench.patterns import patterns
from tests.bench.planning import planning
from tests.bench.policies import policies
from tests.bench.query_setup import query_setup
from tests.bench.rights import recovery, revocation, subscription
from tests.bench.role_expressions import role_expressions
from tests.bench.roles import roles
from tests.bench.sharing import sharing
from tests.bench.world import World

MEASUREMENTS: dict[str, Callable[[World], Iterable[Figure]]] = {
    "latency": end_to_end,
    "kafka": kafka_alone,
    "aggregate": aggregate,
    "revocation": revocation,
    "recovery": recovery,
    "rest": at_rest,
    "subscription": subscription,
    "expressions": role_expressions,
    "policies": policies,
    "planning": planning,
    "setup": query_setup,
    "label": label_mask,
    "patterns": patterns,
    "moving": moving,
    "nexmark": nexmark,
    "operators": operators,
    "cost": cost,
    "sharing": sharing,
    "roles": roles,
    "fused": fused,
    "windows": many_windows,
    "many": revocation_from_many,
    "subscribers": crowded_classes,
    # Last: it stops the runner.
    "scale": scale,
}


def measure(stack: Stack, only: list[str]) -> Iterator[Figure]:
    """Measure on a fresh platform that runs; `only` names measurements, none means all.

    What each measurement gave is kept (`tests.bench.kept`).
    """
    world = World(stack)
    for name, measurement in MEASUREMENTS.items():
        if not only or name in only:
            figures = []
            for figure in measurement(world):
                figures.append(figure)
                yield figure
            keep(name, figures)
            world.clear()
