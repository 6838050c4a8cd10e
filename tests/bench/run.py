"""All measurements, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from deploy.stack import Stack
from tests.bench.figure import Figure
from tests.bench.label_mask import label_mask
from tests.bench.latency import end_to_end, kafka_alone
from tests.bench.rights import revocation, subscription
from tests.bench.world import World

MEASUREMENTS: dict[str, Callable[[World], list[Figure]]] = {
    "kafka": kafka_alone,
    "latency": end_to_end,
    "revocation": revocation,
    "subscription": subscription,
    "label": label_mask,
}


def measure(stack: Stack, only: list[str]) -> Iterator[Figure]:
    """Measure on a fresh platform that runs; `only` names measurements, none means all."""
    world = World(stack)
    for name, measurement in MEASUREMENTS.items():
        if not only or name in only:
            yield from measurement(world)
