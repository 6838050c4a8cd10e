"""Rows in an order of all tuples so far go on after their engine was killed (kill -9)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Message

from catalog.clearance import Clearance
from catalog.engines import FIRST, INGEST, PROBATION
from catalog.relation import Relation
from catalog.runs import IngestStream
from catalog.time_source import TimeSource
from secadmin.languages import parse_sql
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values

_ZERO_S = 1_769_860_800
# The tuples before the engine is killed, and those behind: their keys and prices.
BEFORE = (("x", 5), ("y", 2), ("x", 9), ("x", 1))
AFTER = (("x", 7), ("z", 4), ("y", 8), ("x", 0))
_NUMBERED = (
    "(SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY {}) AS rn FROM s) WHERE rn <= {}"
)
# What each query gives of the first tuples, and then of the others.
QUERIES: dict[str, tuple[str, set[tuple[object, ...]], set[tuple[object, ...]]]] = {
    "keep first": (
        f"SELECT key, price FROM {_NUMBERED.format('at', 1)}",
        {("x", 5), ("y", 2)},
        {("z", 4)},
    ),
    "keep last": (
        f"SELECT key, price FROM {_NUMBERED.format('at DESC', 1)}",
        {*BEFORE},
        {*AFTER},
    ),
    "top": (
        f"SELECT key, price, rn FROM {_NUMBERED.format('price DESC', 2)}",
        {("x", 5, 1), ("y", 2, 1), ("x", 9, 1), ("x", 5, 2)},
        {("x", 7, 2), ("z", 4, 1), ("y", 8, 1), ("y", 2, 2)},
    ),
    "before": (
        "SELECT key, price - LAG(price) OVER (PARTITION BY key ORDER BY at) AS rise FROM s",
        {("x", None), ("y", None), ("x", 4), ("x", -8)},
        {("x", 6), ("z", None), ("y", 6), ("x", -7)},
    ),
}
# Until then some batches have ended, and the rows are in the state alone.
HELD_S = 10
FOUND_S = 120.0


@embedded_only
@pytest.mark.slow
@pytest.mark.long
def test_first_rows_go_on_in_the_next_process(deployment: Deployment) -> None:
    plane = deployment.plane
    stream = plane.stream(0)
    stream = replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))

    class Only:
        def relation(self, name: str) -> Relation:
            return stream.relation

    runs = {
        name: plane.query(parse_sql(text, Only()), Clearance.of(0))
        for name, (text, _, _) in QUERIES.items()
    }
    engines = deployment.start()
    deployment.add(stream, *runs.values())
    deployment.await_running()
    send(plane, stream, BEFORE)
    for name, (_, first, _) in QUERIES.items():
        await_shown(plane, runs[name].classes[0].topic, first)
    time.sleep(HELD_S)
    engines.kill()
    deployment.start(INGEST, FIRST, PROBATION)
    send(plane, stream, AFTER)
    for name, (_, first, then) in QUERIES.items():
        found = await_shown(plane, runs[name].classes[0].topic, first | then)
        # A crash may give a result again, but no other one: each has one id, as it had before.
        assert len({id_of(each) for each in found}) == len(first) + len(then), name


def send(plane: Plane, stream: IngestStream, pairs: Sequence[tuple[str, int]]) -> None:
    """Send tuples of now, a millisecond apart."""
    now = time.time() - _ZERO_S
    plane.send(stream, *(tuple_at(now + n / 1_000, *pair) for n, pair in enumerate(pairs)))


def await_shown(plane: Plane, topic: str, wanted: set[tuple[object, ...]]) -> list[Message]:
    """The records of a topic, once their values are these, each perhaps several times."""
    return plane.read_until(topic, lambda found: {*map(shown, found)} == wanted, FOUND_S)


def shown(message: Message) -> tuple[object, ...]:
    """The values of a result, without those that tell when it came."""
    (value,) = values([message])
    return tuple(each for name, each in value.items() if name not in {"instant", "deleted"})


def id_of(message: Message) -> str:
    return dict(headers(message))["id"]
