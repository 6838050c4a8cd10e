"""What the command line's tests share."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from secadmin.cli.kafka.access import Access
from tests.unit.secadmin.cli.people import NewUser, log_in, terminal
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import CA, Service, running_service

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


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The real service, behind its ASGI interface."""
    (tmp_path / "service").mkdir()
    with running_service(tmp_path / "service") as running:
        yield running


@pytest.fixture
def admin(tmp_path: Path, service: Service) -> Terminal:
    """The first user, who may do everything that concerns the system."""
    return log_in(terminal(tmp_path / "admin", service), "admin", service.first_password)


@pytest.fixture
def new_user(tmp_path: Path, service: Service, admin: Terminal) -> NewUser:
    """Makes a user with roles, and logs it in, in a profile of its own."""

    def make(name: str, *roles: str, **seams: Any) -> Terminal:
        one_time = admin.json("user", "add", name)["password"]
        for role in roles:
            admin.run("role", "add", role)
            admin.ok("user", "assign", name, role)
        return log_in(terminal(tmp_path / name, service, **seams), name, one_time)

    return make


@pytest.fixture
def stream(admin: Terminal) -> str:
    """The name of a stream that the administrator owns."""
    attributes = ("ts:timestamp!", "symbol:string", "price:double")
    admin.ok("schema", "add", "trades", *attributes)
    admin.ok("stream", "add", "in1", "--schema", "trades", "--event-time", "ts", "--lateness", "5s")
    return "in1"


@pytest.fixture
def output(admin: Terminal, stream: str, tmp_path: Path) -> str:
    """The name of the output of a query over that stream."""
    file = tmp_path / "alerts.sql"
    file.write_text("SELECT ts, price FROM in1 WHERE price > 5")
    admin.ok("query", "add", "alerts", str(file))
    return "alerts"
