"""The runner's clock jumps back an hour while data flows."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from catalog.clearance import Clearance
from catalog.plan import Source
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import headers, prices
from tests.requirements import missing

HOUR_S = 3_600
SOURCE = Path(__file__).with_name("set_clock.c")


def clock_that_can_be_set(deployment: Deployment) -> Path:
    """A file that says by how many seconds the runners' clock is wrong."""
    compiler = shutil.which("cc")
    if compiler is None:
        missing("a C compiler")
    library, offset = deployment.folder / "set_clock.so", deployment.folder / "offset"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE], check=True)
    offset.write_text("0")
    deployment.environment |= {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(offset)}
    return offset


def tuple_from(moment: float, price: int) -> dict[str, object]:
    """A tuple whose event time is the moment, in seconds since 1970."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
    return {"at": at, "key": "x", "price": price}


@embedded_only
@pytest.mark.slow
@pytest.mark.long
def test_a_clock_put_back_loses_nothing_and_leaks_nothing(deployment: Deployment) -> None:
    offset = clock_that_can_be_set(deployment)
    plane = deployment.plane
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0), Clearance.of(1))
    engines = deployment.start()
    deployment.add(stream, run)
    plane.send(stream, tuple_from(time.time(), 0))
    delivered, withheld = (c.topic for c in run.classes)
    plane.read_prices(delivered, {0})

    # In the middle of its batches: it goes on.
    offset.write_text(f"-{HOUR_S}")
    plane.send(stream, *(tuple_from(time.time() - HOUR_S, n) for n in range(1, 20)))
    plane.read_prices(delivered, set(range(20)))

    # Started anew, too; what is from the future is told by the broker's clock, not by its own.
    engines.end()
    deployment.start()
    plane.send(stream, *(tuple_from(time.time() + HOUR_S, n) for n in range(20, 30)))
    plane.send(stream, *(tuple_from(time.time(), n) for n in range(30, 40)))
    kept = plane.read_prices(f"quarantine.{stream.relation.name}", set(range(20, 30)))
    assert {dict(headers(m))["reason"] for m in kept} == {
        "at: too far ahead of when the broker took it"
    }
    passed = {*range(20), *range(30, 40)}
    assert prices(plane.read_prices(delivered, passed)) == passed

    # Put right.
    offset.write_text("0")
    plane.send(stream, *(tuple_from(time.time(), n) for n in range(40, 50)))
    passed |= set(range(40, 50))
    assert prices(plane.read_prices(delivered, passed)) == passed
    assert len(plane.read(f"lab.{stream.relation.name}", 40)) == 40
    assert plane.read(withheld, 0) == []
    deployment.await_running()
