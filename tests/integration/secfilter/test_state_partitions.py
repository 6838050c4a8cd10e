"""The number of parts of a query's state is chosen when the query begins."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from datetime import datetime

import pytest
from confluent_kafka import Message, Producer

from catalog.clearance import Clearance
from catalog.models import OutputRow, QueryRow
from catalog.plan import Aggregation, Source, Window
from catalog.runs import QueryRun
from catalog.topics import quarantine_topic
from deploy.settings import merged, to_toml
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Plane
from tests.integration.secfilter.test_cluster import (
    PARTITIONS,
    WINDOW_MS,
    Flow,
    a_stream,
    counts_of,
)
from tests.plans import grouped

OPTION = "spark.sql.shuffle.partitions"


def parts_of(deployment: Deployment, run: QueryRun) -> set[str]:
    """The parts of the run's state, by their numbers."""
    state = (deployment.folder / "checkpoints").rglob(f"*{run.name}*/**/state/0/*")
    return {each.name for each in state if each.name.isdecimal()}


def window_of(refused: Message) -> int:
    """The window of a refused record, by its number since 1970."""
    at = datetime.fromisoformat(json.loads(refused.value() or b"")["at"])
    return round(at.timestamp() * 1_000) // WINDOW_MS


@pytest.mark.long
@embedded_only
def test_a_query_that_runs_keeps_its_number_and_a_new_one_takes_the_setting(
    plane: Plane, deployment: Deployment
) -> None:
    stream = a_stream(plane)
    windows = grouped(
        *(Source(stream.relation), Window(WINDOW_MS, WINDOW_MS), ()),
        (Aggregation("n", "count", None),),
    )
    before, after = (plane.query(windows, Clearance.of(0)) for _ in range(2))
    deployment.add(stream, before, after, partitions=PARTITIONS)
    deployment.stop(after)
    engines = deployment.start()
    deployment.await_running()
    flow = Flow(Producer(plane.broker.admin_config()), stream.senders[0].topic)
    plane.read_until(before.classes[0].topic, lambda found: bool(counts_of(found)))
    assert parts_of(deployment, before) == {"0"}
    # In order: what ran in an engine that dies is on trial, in an engine that is not here.
    engines.end()

    table = tomllib.loads(deployment.settings.read_text())
    changed = merged(table, {"secfilter": {"options": {OPTION: "3"}}})
    deployment.settings.write_text(to_toml(changed))
    with deployment.catalog.change("test") as change:
        output = change.session.get_one(OutputRow, after.output.object_id)
        change.session.get_one(QueryRow, output.query_id).running = True
        change.audit("start", "test")
        change.bump_generation()
    engines = deployment.start()
    deployment.await_running()
    plane.read_until(after.classes[0].topic, lambda found: bool(counts_of(found)))
    flow.end()
    quarantine = quarantine_topic(stream.relation.name)
    closed = plane.read_until(
        before.classes[0].topic,
        lambda found: counts_of(found).total() + len(plane.read(quarantine, 0)) == flow.count,
    )
    # On a busy machine the sender itself may be late. What is refused is told, and not lost.
    refused = Counter(map(window_of, plane.read(quarantine, 0)))
    assert counts_of(closed) + refused == flow.windows(), "open windows have lost nothing"
    assert parts_of(deployment, before) == {"0"}
    assert parts_of(deployment, after) == {"0", "1", "2"}
    engines.kill()
