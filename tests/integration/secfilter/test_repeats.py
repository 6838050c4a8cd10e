"""What a crash delivers once more."""

from dataclasses import replace

from catalog.clearance import Clearance
from catalog.plan import Source
from catalog.runs import IngestRun
from secfilter.pace import Pace
from tests.integration.secfilter.plane import Plane, headers, one_id_each, tuple_at


def test_what_a_crash_repeats_has_the_id_that_it_had(plane: Plane) -> None:
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0), Clearance.of(1))
    delivered, withheld = (c.topic for c in run.classes)
    plane.start(IngestRun("ingest-1", (stream,)))
    # Tuples of a batch that is over: an id must not go by the place in a batch either.
    query = plane.start(run)
    plane.send(stream, *(tuple_at(n, price=n) for n in range(50)))
    plane.read_prices(delivered, set(range(50)))
    plane.end(query)

    # No batch ends by itself from here on, so what is broken off is all done again.
    endless_ms = 3_600_000
    plane.engine = replace(plane.engine, pace=Pace(query_ms=endless_ms, new_ms=endless_ms))
    query = plane.start(run)
    plane.send(stream, *(tuple_at(n, price=n) for n in range(50, 100)))
    plane.read_prices(delivered, set(range(100)))
    plane.break_off(query)
    plane.start(run)
    plane.send(stream, *(tuple_at(n, price=n) for n in range(100, 150)))
    got = plane.read_prices(delivered, set(range(150)))
    assert len(got) > 150, "nothing came again"
    assert one_id_each(got).keys() == set(range(150))
    assert {dict(headers(m))["label"] for m in got} == {"1"}
    assert plane.read(withheld, 0) == []
