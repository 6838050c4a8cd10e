"""What the command line's tests share."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from secadmin.cli.access import Access

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
SECRET = 'S3cret"with\\odd=#characters'


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Modes must hold whatever the user's umask is."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def modes() -> Callable[[Path], dict[str, str]]:
    """The modes of a folder (under ".") and of all in it."""

    def read(folder: Path) -> dict[str, str]:
        paths = {".": folder} | {path.name: path for path in folder.iterdir()}
        return {name: oct(stat.S_IMODE(path.stat().st_mode)) for name, path in paths.items()}

    return read


@pytest.fixture
def reader() -> Access:
    """A subscription."""
    return Access(
        kind="output",
        name="alerts",
        principal="output-0a1b",
        secret=SECRET,
        bootstrap="localhost:9093",
        ca_pem=CA,
        group_prefix="output-0a1b.",
        topic_pattern=r"^out\.alerts\..*",
    )


@pytest.fixture
def writer() -> Access:
    """A sender's access."""
    return Access(
        kind="send",
        name="in1",
        principal="send-0a1b",
        secret=SECRET,
        bootstrap="kafka.example:9093",
        ca_pem=CA,
        topic="in.in1",
    )
