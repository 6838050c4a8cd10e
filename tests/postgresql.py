"""A PostgreSQL server for the tests: installed programs, a temporary folder, a free port.

`SECURE_STREAMS_TEST_POSTGRESQL` names another server, on which databases may be made and dropped.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from catalog.migrations import upgrade
from catalog.store import Catalog
from deploy.ports import LOOPBACK, free_port
from tests.audit_key import AUDIT_KEY
from tests.requirements import missing

ELSEWHERE = "SECURE_STREAMS_TEST_POSTGRESQL"
# Debian keeps the server's programs out of PATH, in a folder for each version.
_DEBIAN = Path("/usr/lib/postgresql")
_WAIT_S = 60.0
# A database that is thrown away need not survive a power cut.
OPTIONS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "300",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "32MB",
}


class PostgresqlServer:
    """A server on which databases are made for a test and dropped after it."""

    def __init__(self, url: URL) -> None:
        """`url` names somebody who may make databases, and one to be connected to meanwhile."""
        self._url = url.set(drivername="postgresql+psycopg")
        self._admin = create_engine(self._url, isolation_level="AUTOCOMMIT")
        self._migrated: str | None = None

    @contextmanager
    def database(self, *, migrated: bool) -> Iterator[str]:
        """The URL of a new database, with the catalog's tables or without any."""
        name = self._create(self._template() if migrated else None)
        try:
            yield self._url_of(name)
        finally:
            self._drop(name)

    @contextmanager
    def owned_database(self, *others: str) -> Iterator[dict[str, str]]:
        """A new database without tables: role -> its URL there. `owner` owns it, no one is more.

        The names of the roles get an ending that no other database has.
        """
        name, password = self._create(), secrets.token_urlsafe(16)
        roles = {each: f"{each}_{uuid.uuid4().hex[:8]}" for each in ("owner", *others)}
        for role in roles.values():
            self._execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
        self._execute(f"ALTER DATABASE {name} OWNER TO {roles['owner']}")
        there = self._url.set(database=name, password=password)
        try:
            yield {
                each: there.set(username=role).render_as_string(hide_password=False)
                for each, role in roles.items()
            }
        finally:
            self._drop(name)
            for role in roles.values():
                self._execute(f"DROP ROLE {role}")

    def grant(self, what: str, url: str) -> None:
        """Alter the role of that URL, as a superuser may."""
        self._execute(f"ALTER ROLE {make_url(url).username} {what}")

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            self._admin.connect().close()
        except OperationalError:
            return False
        return True

    def close(self) -> None:
        """Drop what was made to be copied, and disconnect."""
        if self._migrated is not None:
            self._drop(self._migrated)
        self._admin.dispose()

    def _template(self) -> str:
        """A database with the tables: to copy it is much faster than to migrate anew."""
        if self._migrated is None:
            self._migrated = self._create()
            catalog = Catalog(self._url_of(self._migrated), AUDIT_KEY)
            upgrade(catalog.engine)
            # What is copied may have no connection.
            catalog.close()
        return self._migrated

    def _create(self, template: str | None = None) -> str:
        name = f"catalog_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        return name

    def _drop(self, name: str) -> None:
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _url_of(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    def _execute(self, statement: str) -> None:
        with self._admin.connect() as connection:
            connection.execute(text(statement))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """The server of this test session."""
    if elsewhere := os.environ.get(ELSEWHERE):
        with closing(PostgresqlServer(make_url(elsewhere))) as server:
            yield server
    else:
        with _started(programs_there()) as server:
            yield server


def programs_there() -> Path:
    """The folder of the newest server that is installed."""
    found = [path.parent for path in _DEBIAN.glob("*/bin/postgres")]
    if found:
        return max(found, key=lambda folder: int(folder.parent.name))
    in_path = shutil.which("postgres")
    if in_path is None or shutil.which("initdb") is None:
        missing("PostgreSQL")
    return Path(in_path).parent


@contextmanager
def _started(programs: Path) -> Iterator[PostgresqlServer]:
    user = account()
    # Not pytest's own folder, which only its user may enter.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    try:
        password = secrets.token_urlsafe(16)
        password_file = folder / "password"
        password_file.touch(0o600)
        password_file.write_text(password)
        if user:
            for path in (folder, password_file):
                shutil.chown(path, user["user"], user["group"])
        initialise(programs, folder, user)
        port = free_port()
        url = URL.create("postgresql", "postgres", password, LOOPBACK, port, "postgres")
        with (
            running(programs, folder, port, user) as process,
            closing(PostgresqlServer(url)) as server,
        ):
            _await(server, process, folder / "log")
            yield server
    finally:
        shutil.rmtree(folder)


def account() -> dict[str, Any]:
    """Whom to run the server as: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_name, "group": entry.pw_gid, "extra_groups": []}


def initialise(programs: Path, folder: Path, user: dict[str, Any]) -> None:
    """Make an empty database cluster in `folder`, whose password is in a file there."""
    command: list[str | Path] = [
        programs / "initdb",
        "-D",
        folder / "data",
        "--username=postgres",
        "--no-sync",
    ]
    command += [f"--pwfile={folder / 'password'}", "--auth=scram-sha-256", "--no-instructions"]
    command += ["--encoding=UTF8", "--locale=C.UTF-8"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **user)
    assert done.returncode == 0, done.stderr


@contextmanager
def running(
    programs: Path,
    folder: Path,
    port: int,
    user: dict[str, Any],
    options: Mapping[str, str] = OPTIONS,
) -> Iterator[subprocess.Popen[bytes]]:
    """The server's process while the block runs; its data are in `folder`."""
    command: list[str | Path] = [programs / "postgres", "-D", folder / "data", "-p", str(port)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    # It ends with the tests, however they end.
    leash = [path, "--pdeathsig", "QUIT"] if (path := shutil.which("setpriv")) else []
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*leash, *command],
            cwd=folder,
            stdout=log,
            stderr=log,
            # Ctrl-C is for the tests, which stop it in order.
            start_new_session=True,
            **user,
        )
    try:
        yield process
    finally:
        # "Fast": connections are closed, not waited for.
        process.send_signal(signal.SIGINT)
        process.wait(_WAIT_S)


def _await(server: PostgresqlServer, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not server.ready():
        said = log.read_text(errors="replace")
        assert process.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
