"""The results of one micro-batch come in the order of their time.

A query over them takes the newest for how far time has come; if it has read a part of them by then,
what is older and comes later is late for it, and lost.
"""

import random

import pytest

from catalog.clearance import Clearance
from catalog.expression import AttributeRef
from catalog.plan import Aggregation, Column, Join, Node, Project, Source, Union, Window
from catalog.relation import Relation
from catalog.runs import IngestRun
from tests.integration.secfilter.plane import Plane, tuple_at, values
from tests.lanes import sampled
from tests.plans import checked, grouped, updating, whole

SECONDS, SEED = 40, 4


def counts(relation: Relation) -> Node:
    """Tuples a second and key."""
    keys = (Column("key", AttributeRef("key")),)
    counted = (Aggregation("n", "count", None),)
    return grouped(Source(relation), Window(1_000, 1_000), keys, counted)


def pairs(left: Relation, right: Relation) -> Node:
    """Tuples of one key at most a second apart."""
    other = Project(
        Source(right),
        tuple(Column(f"r_{name}", AttributeRef(name)) for name in right.schema.names),
    )
    return Join(Source(left), other, ((AttributeRef("key"), AttributeRef("r_key")),), -1_000, 1_000)


@pytest.mark.parametrize(
    "what", sampled(("results", "updates", "pairs", "two aggregates"), 4, first=2)
)
def test_results_of_one_batch_come_in_the_order_of_their_time(plane: Plane, what: str) -> None:
    one, two = plane.stream(0), plane.stream(1)
    plan = {
        "results": whole(counts(one.relation)),
        "updates": updating(counts(one.relation)),
        "two aggregates": whole(Union((counts(one.relation), counts(two.relation)))),
        "pairs": whole(pairs(one.relation, two.relation)),
    }[what]
    run = plane.query(plan, Clearance.of(0, 1), labelled=True)
    plane.start(IngestRun("ingest-1", (one, two)))
    for stream in (one, two):
        tuples = [tuple_at(n, key) for n in range(SECONDS) for key in "ab"]
        random.Random(SEED).shuffle(tuples)
        plane.send(stream, *tuples, tuple_at(SECONDS + 5))
        plane.read(stream.relation.topic, 2 * SECONDS + 1)

    plane.start(run)
    time = checked(plan).event_time
    assert time is not None
    sides = 2 if what == "two aggregates" else 1
    found = plane.read(run.classes[0].topic, 2 * SECONDS * sides)
    times = [str(value[time]) for value in values(found)]
    assert len(times) >= 2 * SECONDS * sides and times == sorted(times)
    # The same batch, written by the same task.
    inside = plane.read(run.output.topic, 2 * SECONDS * sides)
    assert len(inside) == len(found)
