"""The archive of Spark's classes is made once for each Java and Spark, and nobody waits for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import class_archive
from deploy.class_archive import BEGIN_AFTER_S, ArchiveMaker
from deploy.part_names import CLASS_ARCHIVE
from deploy.processes import ManagedProcess
from secfilter.class_archive import archive_of

WITHIN_S = 60


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars-1" / "connector"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Where each Java below writes a line with its process, when it is called."""
    return tmp_path / "calls"


@pytest.fixture
def broken(tmp_path: Path, calls: Path) -> Path:
    """A Java that ends at once."""
    return _java(tmp_path, f"echo $$ >>{calls}; exit 1")


def _java(folder: Path, script: str) -> Path:
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    version = '[ "$1" != -version ] || { echo \'openjdk version "17"\' >&2; exit 0; }'
    java.write_text(f"#!/bin/sh\n{version}\n{script}\n")
    java.chmod(0o700)
    return java


def test_one_that_cannot_be_made_is_tried_once_for_each_java(
    jars: Path, broken: Path, calls: Path
) -> None:
    assert not class_archive.is_made(broken, jars)
    archive_of(jars).touch()
    class_archive.ensure(broken, jars)
    assert not archive_of(jars).exists(), "one of another Java is of no use"
    called = calls.read_text()
    assert called
    class_archive.ensure(broken, jars)
    assert calls.read_text() == called
    broken.write_text(broken.read_text() + "\n")
    assert not class_archive.is_made(broken, jars), "it is another Java now"


def test_what_is_of_no_use_is_removed(jars: Path, broken: Path, tmp_path: Path) -> None:
    """What a killed attempt has left, and the archives of installations that are gone."""
    gone, there = jars.with_name("connector-1"), jars.with_name("connector-2")
    for archive, spark in ((gone, tmp_path / "gone"), (there, tmp_path)):
        archive.with_suffix(".jsa").touch()
        archive.with_suffix(".made").write_text(f"{spark}\nkey\n")
    gone.with_suffix(".new").touch()
    class_archive.ensure(broken, jars)
    assert sorted(path.name for path in jars.parent.glob("connector-[12].*")) == [
        "connector-2.jsa",
        "connector-2.made",
    ]


def test_a_platform_makes_it_later_and_leaves_nothing_if_it_ends_before(
    jars: Path, calls: Path, tmp_path: Path
) -> None:
    new = archive_of(jars).with_suffix(".new")
    # As Java does: it writes the archive when it ends, unless it is killed.
    writes = f"trap 'echo classes >{new}; exit' TERM HUP INT EXIT; echo classes >{new}"
    java = _java(tmp_path, f"{writes}; echo $$ >>{calls}; while :; do sleep 0.1; done")
    now = [0.0]
    maker = ArchiveMaker(tmp_path / "state", java, jars, lambda: now[0])
    process = ManagedProcess(CLASS_ARCHIVE, tmp_path / "state")
    now[0] = BEGIN_AFTER_S - 1
    maker.tick()
    assert process.mark is None
    now[0] = BEGIN_AFTER_S
    maker.tick()
    mark = process.mark
    assert mark is not None
    _until(calls.exists)
    assert os.getpriority(os.PRIO_PROCESS, mark.pid) == 19
    maker.tick()
    assert process.mark == mark, "it is begun once only"
    maker.stop()
    assert process.mark is None
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in calls.read_text().split()))
    assert not new.exists()
    assert not class_archive.is_made(java, jars), "the next platform tries again"


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
