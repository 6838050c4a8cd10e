"""An event pattern goes on after its engine was killed (kill -9) in the middle of a match."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from catalog.clearance import Clearance
from catalog.engines import FIRST, INGEST, PROBATION
from catalog.plan import Source
from catalog.time_source import TimeSource
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import headers, values
from tests.integration.secfilter.test_moving import rising, send_now

# The first rows of the match, and a key that it is not about, and the rest of the match.
BEFORE, AFTER = (("y", 0), ("x", 1), ("x", 2)), (("x", 4), ("x", 5))
# Until then some batches have ended, and the rows are in the state alone.
HELD_S = 10
# A match is certain when its time is over, which is two minutes here.
FOUND_S = 300.0


@embedded_only
@pytest.mark.slow
@pytest.mark.long
def test_a_match_goes_on_in_the_next_process(deployment: Deployment) -> None:
    plane = deployment.plane
    stream = plane.stream(0)
    stream = replace(stream, relation=replace(stream.relation, time=TimeSource.BROKER))
    run = plane.query(rising(Source(stream.relation), 0), Clearance.of(0))
    engines = deployment.start()
    deployment.add(stream, run)
    deployment.await_running()
    send_now(plane, stream, *BEFORE)
    plane.read(f"lab.{stream.relation.name}", len(BEFORE))
    time.sleep(HELD_S)
    engines.kill()
    deployment.start(INGEST, FIRST, PROBATION)
    send_now(plane, stream, *AFTER)
    wanted = [(1, 5, 2), (2, 5, 4), (4, 5, 5), (5, 5, None)]
    found = plane.read(run.classes[0].topic, len(wanted), timeout_s=FOUND_S)
    by_id = {
        dict(headers(each))["id"]: (value["price"], value["top"], value["behind"])
        for each, value in zip(found, values(found), strict=True)
    }
    assert sorted(by_id.values(), key=str) == wanted
