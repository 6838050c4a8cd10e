"""What of setting up a query is security (004 §4.2, figures 11 and 12: 18 % down to 5 %).

The six queries of the paper, from 4 objects to 140: SecAdmin's own operations are called here with
a stopwatch in them, over the platform's catalog and Kafka, and its runner starts the query. The
session is looked up, not opened: the login's password hash costs what it costs on purpose, once.
The class is made when its first subscriber comes, in a call of its own, of which nothing else
counts. Each query starts when the one before is gone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from catalog import output_relation
from catalog.access_kind import AccessKind
from catalog.authorizer import Authorizer
from catalog.executions import execution_of
from catalog.models import Object, RunStatus
from catalog.reaches import Reaches
from catalog.run_names import query_run_name
from catalog.wanted import is_in_step, wanted_runs
from secadmin.__main__ import build_platform
from secadmin.control import accesses, prepared_query, queries, work
from secadmin.control.platform import Platform
from secadmin.control.query_definition import QueryDefinition
from secadmin.control.settlement import Settlement
from secadmin.control.work import Caller
from tests.bench.figure import Figure, middle
from tests.bench.stopwatch import Stopwatch
from tests.bench.world import World, until

# Schemas, which are as many as streams, and boxes (004 §4.2).
QUERIES = ((1, 2), (2, 4), (3, 16), (4, 32), (5, 64), (6, 128))
RUNS = 5
ADDING: dict[str, Sequence[tuple[Any, str]]] = {
    "session": [(work, "authenticate"), (work, "subject_of_session")],
    "authorization": [(Authorizer, name) for name in ("require", "find", "decide", "system")],
    "labels": [(Reaches, "of"), (Reaches, "of_new"), (output_relation, "is_public")],
    "policies": [(prepared_query, name) for name in ("roles_to_see_as", "through_views")],
}
SUBSCRIBING: dict[str, Sequence[tuple[Any, str]]] = {"class": [(Settlement, "settle_new")]}
PARTS = (*ADDING, *SUBSCRIBING)


@dataclass(frozen=True, slots=True)
class _Run:
    security_ms: dict[str, float]
    running_ms: float

    @property
    def share(self) -> float:
        """Per cent of the time from the request to the running query."""
        return sum(self.security_ms.values()) / self.running_ms * 100


def query_setup(world: World) -> Iterable[Figure]:
    """Milliseconds of security, by part, and their share of the time to the running query."""
    platform = build_platform(world.stack.settings)
    caller = Caller(world.admin.token, world.admin.user)
    for number in range(max(streams for streams, _ in QUERIES)):
        attributes = [
            {"name": "ts", "type": "timestamp", "required": True},
            {"name": "n", "type": "bigint"},
        ]
        world.admin.post("/schemas", name=f"setup{number}", attributes=attributes)
        world.add_stream(_stream(number), f"setup{number}")
        world.grant("ADMIN", "stream", _stream(number), "READ TUPLE")
    for streams, boxes in QUERIES:
        text = _diagram(streams, boxes)
        runs = [_set_up(world, platform, caller, f"s{boxes}x{i}", text) for i in range(1 + RUNS)]
        yield from _figures(2 * streams + boxes, runs[1:])
    platform.catalog.close()


def _set_up(world: World, platform: Platform, caller: Caller, name: str, text: str) -> _Run:
    """Add the query and subscribe to it, as the service does; it is gone afterwards."""
    output = f"{name}out"
    watch = Stopwatch()
    with watch.watching(ADDING):
        started = time.monotonic()
        definition = QueryDefinition(name, "borealis", text.replace("RESULT", output))
        queries.add_query(platform, caller, definition)
        until(lambda: _runs(platform, output), f"for {name} to run")
        running_ms = (time.monotonic() - started) * 1000
    with watch.watching(SUBSCRIBING):
        accesses.give(platform, caller, AccessKind.OUTPUT, output, keep=False)
    queries.remove_query(platform, caller, name)
    until(lambda: _nothing_to_do(platform), f"for {name} to be gone")
    return _Run(dict(watch.ms), running_ms)


def _nothing_to_do(platform: Platform) -> bool:
    """Whether the runner runs what the catalog wants, and nothing else."""
    with platform.catalog.read() as session:
        running = select(RunStatus.name).where(RunStatus.state != "stopped")
        wanted = {run.name for run in wanted_runs(session)}
        return is_in_step(session) and wanted >= set(session.scalars(running))


def _runs(platform: Platform, output: str) -> bool:
    """Whether the runner says so."""
    with platform.catalog.read() as session:
        found = select(Object.id).where(Object.name == output, Object.removed_at.is_(None))
        name = query_run_name(execution_of(session, session.scalars(found).one()))
        status = session.get(RunStatus, name)
        return status is not None and status.state == "running"


def _figures(objects: int, runs: Sequence[_Run]) -> Iterable[Figure]:
    what = f"query set-up, {objects} objects"
    for part in PARTS:
        yield middle(f"{what}: {part}", [run.security_ms.get(part, 0.0) for run in runs], "ms")
    yield middle(f"{what}: request to running query", [run.running_ms for run in runs], "ms")
    yield middle(f"{what}: share of security", [run.share for run in runs], "%", 2.0)


def _stream(number: int) -> str:
    return f"setup{number}"


def _diagram(streams: int, boxes: int) -> str:
    """A diagram of so many streams, each with a schema, and boxes: a union, then filters."""
    names = [_stream(number) for number in range(streams)]
    made, arc = [], names[0]
    if streams > 1:
        arc = "all"
        inputs = "".join(f'<in stream="{name}"/>' for name in names)
        made.append(f'<box name="all" type="union">{inputs}<out stream="all"/></box>')
    for number in range(len(made), boxes):
        following = "RESULT" if number == boxes - 1 else f"arc{number}"
        made.append(
            f'<box name="filter{number}" type="filter"><in stream="{arc}"/>'
            f'<out stream="{following}"/>'
            f'<parameter name="expression.0" value="n &gt; {number}"/></box>'
        )
        arc = following
    declared = "".join(
        f'<input stream="{name}" schema="{name}"/><schema name="{name}">'
        '<field name="ts" type="timestamp"/><field name="n" type="long"/></schema>'
        for name in names
    )
    return (
        f'<borealis>{declared}<output stream="RESULT"/>'
        f'<query name="setup">{"".join(made)}</query></borealis>'
    )
