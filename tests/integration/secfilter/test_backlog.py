"""A query that has much to read reads it in micro-batches of a bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewPartitions
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from catalog.clearance import Clearance
from catalog.plan import Aggregation, Source, Window
from catalog.runs import IngestRun
from secfilter.backlog import GREW
from tests.integration.secfilter.plane import Plane, tuple_at, values
from tests.lanes import sampled
from tests.plans import grouped

SECONDS, A_SECOND, MOST = 40, 10, 50
COUNTED = (Aggregation("n", "count", None),)


def sizes(query: StreamingQuery) -> list[int]:
    """How many records the batches of the query read."""
    read = [int(each["numInputRows"]) for each in query.recentProgress]
    return [number for number in read if number]


def counts(found: Sequence[Message]) -> Counter[str]:
    """The tuples of each window, by its start."""
    return Counter({str(value["window_start"]): int(str(value["n"])) for value in values(found)})


@pytest.mark.parametrize("partitions", sampled((1, 2), 2, first=1))
def test_a_backlog_is_read_in_bounded_batches_if_its_topic_is_in_order(
    plane: Plane, partitions: int
) -> None:
    stream = plane.stream(0, partitions=partitions)
    plan = grouped(Source(stream.relation), Window(1_000, 1_000), (), COUNTED)
    run = plane.query(plan, Clearance.of(0))
    pace = replace(plane.engine.pace, microbatch_records=MOST)
    plane.engine = replace(plane.engine, pace=pace)
    plane.start(IngestRun("ingest-1", (stream,)))
    plane.send(stream, *(tuple_at(n) for n in range(SECONDS) for _ in range(A_SECOND)))
    plane.send(stream, tuple_at(SECONDS + 5))
    sent = SECONDS * A_SECOND + 1
    plane.read(stream.relation.topic, sent)

    query = plane.start(run)
    found = plane.read(run.classes[0].topic, SECONDS)
    assert counts(found) == Counter(dict.fromkeys(counts(found), A_SECOND))
    assert len(found) == SECONDS
    if partitions > 1:
        assert sizes(query) == [sent], "a batch does not end between two partitions"
        return
    assert max(sizes(query)) == MOST and sum(sizes(query)) == sent

    # With a second partition it would no more be in order.
    lab = stream.relation.topic
    plane.admin.create_partitions([NewPartitions(lab, 2)])[lab].result()
    plane.write(plane.producer, lab, b"no tuple", to=1)
    with pytest.raises(StreamingQueryException, match=GREW):
        query.awaitTermination(60)
    again = plane.start(run)
    plane.send(stream, *(tuple_at(SECONDS + 10) for _ in range(3 * MOST)))
    plane.read(lab, sent + 1 + 3 * MOST)
    plane.read_until(run.classes[0].topic, lambda found: len(found) > SECONDS)
    assert again.isActive
