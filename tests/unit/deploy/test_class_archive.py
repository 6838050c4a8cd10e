"""The archive of Spark's classes is made once for each Java, and needed by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy import class_archive
from secfilter.class_archive import archive_of


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars-1" / "connector"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A Java that ends at once, and notes that it was called."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\nexit 1\n")
    java.chmod(0o700)
    return java


def test_one_that_cannot_be_made_is_tried_once_for_each_java(
    jars: Path, broken: Path, tmp_path: Path
) -> None:
    assert not class_archive.is_made(broken, jars)
    archive_of(jars).touch()
    class_archive.ensure(broken, jars)
    assert not archive_of(jars).exists(), "one of another Java is of no use"
    calls = (tmp_path / "calls").read_text()
    assert calls
    class_archive.ensure(broken, jars)
    assert (tmp_path / "calls").read_text() == calls
    broken.write_text(broken.read_text() + "\n")
    assert not class_archive.is_made(broken, jars), "it is another Java now"
