"""What the platform takes while nothing happens: memory and CPU of all its processes."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.bench.figure import Figure
from tests.bench.process_group import ProcessGroup
from tests.bench.settled import SETTLED_S
from tests.bench.world import World

QUERIES = 5
WATCHED_S = 180.0
GB, CORES = 3.0, 0.15


def at_rest(world: World) -> Iterable[Figure]:
    """Memory in GB and CPU in cores of broker, service and engines, with five stateless queries.

    The stream has the broker's time, as streams usually have, so its ticks come all the time. A
    platform in the background has a spare engine, so this one has it too.
    """
    world.add_stream("resting", time="broker")
    for number in range(QUERIES):
        world.add_query(f"rest{number}", f"SELECT n FROM resting WHERE n > {number}")
    spare = world.stack.spare
    world.stack.launch_spare()
    engines = (each.name for each in world.stack.engines.values())
    names = ("broker", "secadmin", *engines, spare.name)
    time.sleep(SETTLED_S)
    if not world.stack.spare_file.exists():
        raise RuntimeError("there is no spare")
    parts = {name: ProcessGroup(world.pid(name)) for name in names}
    cpu = {name: part.cpu_s() for name, part in parts.items()}
    started = time.monotonic()
    time.sleep(WATCHED_S)
    passed = time.monotonic() - started
    cores = {name: (part.cpu_s() - cpu[name]) / passed for name, part in parts.items()}
    memory = {name: part.memory_gb() for name, part in parts.items()}
    spare.kill_all()
    what = f"at rest with {QUERIES} stateless queries"
    yield Figure(f"{what}: memory", sum(memory.values()), "GB", GB)
    yield Figure(f"{what}: CPU", sum(cores.values()), "cores", CORES)
    for name, used in cores.items():
        yield Figure(f"{what}: CPU of {name}", used, "cores")
        yield Figure(f"{what}: memory of {name}", memory[name], "GB")
