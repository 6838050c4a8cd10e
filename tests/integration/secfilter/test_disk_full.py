"""The disk of the checkpoints is full while data flows: told, tried again, and nothing is lost."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.clearance import Clearance
from catalog.plan import Source
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import one_id_each, tuple_at
from tests.requirements import missing

SIZE = "4m"
Until = Callable[..., None]


@pytest.fixture
def small_disk(deployment: Deployment) -> Iterator[Path]:
    """The checkpoints' folder, on a file system of a few megabytes."""
    folder = deployment.folder / "checkpoints"
    folder.mkdir(mode=0o700)
    options = f"size={SIZE},mode=0700"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        missing("the right to mount a file system")
    yield folder
    deployment.end()
    # A process that was killed may be a moment in ending.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Leave not a byte on the folder's file system."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return filler


@embedded_only
@pytest.mark.slow
@pytest.mark.long
def test_a_full_disk_is_told_of_and_loses_nothing(
    deployment: Deployment, small_disk: Path, until: Until
) -> None:
    plane = deployment.plane
    stream = plane.stream(0)
    run = plane.query(Source(stream.relation), Clearance.of(0))
    deployment.start()
    deployment.add(stream, run)
    plane.send(stream, tuple_at(1, "datum-7Q", 0))
    assert len(plane.read(run.classes[0].topic, 1)) == 1

    filler = fill(small_disk)
    plane.send(stream, *(tuple_at(n, "datum-7Q", n) for n in range(1, 50)))
    until(lambda: len(deployment.messages()) > 0)
    told = deployment.messages()
    assert all("the disk of the checkpoints is full" in message for message in told), told

    filler.unlink()
    plane.send(stream, *(tuple_at(n, "datum-7Q", n) for n in range(50, 100)))
    deployment.await_running()
    assert len(plane.read(f"lab.{stream.relation.name}", 100)) == 100
    out = plane.read_prices(run.classes[0].topic, set(range(100)))
    assert one_id_each(out).keys() == set(range(100)), "what comes again has its id"
    assert "datum-7Q" not in deployment.log()
