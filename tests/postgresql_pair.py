"""A server of PostgreSQL and a standby of it, which takes over."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, create_engine, text

from deploy.ports import LOOPBACK, free_port
from tests.postgresql import OPTIONS, PostgresqlServer, account, initialise, programs_there, running
from tests.waiting import wait_until

WAIT_S = 60.0
# What was confirmed must be on both.
_OPTIONS = OPTIONS | {
    "wal_level": "replica",
    "max_wal_senders": "4",
    "synchronous_commit": "on",
    "max_connections": "100",
}
_STANDBY = "standby"


@dataclass
class Server:
    """One of the servers: where it is reached, its folder, and its process while it runs."""

    url: URL
    folder: Path
    process: subprocess.Popen[bytes] | None = None


@dataclass
class Pair:
    """Both servers. `url` names both of them, and the database of the catalog."""

    _programs: Path
    _user: dict[str, Any]
    _primary: Server
    _standby: Server
    _stack: ExitStack

    @property
    def primary(self) -> URL:
        """Where the server is that accepts changes."""
        return self._primary.url

    @property
    def url(self) -> str:
        """The URL by which the platform finds whichever is the primary."""
        hosts = [f"{LOOPBACK}:{each.url.port}" for each in (self._primary, self._standby)]
        both = URL.create("postgresql", "postgres", self.primary.password, database="postgres")
        return both.update_query_dict({"host": hosts}).render_as_string(hide_password=False)

    def confirm_on_both(self) -> None:
        """From now on a change is confirmed when it is on both."""
        engine = create_engine(self.primary, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"ALTER SYSTEM SET synchronous_standby_names = '{_STANDBY}'"))
            connection.execute(text("SELECT pg_reload_conf()"))
            state = text("SELECT sync_state FROM pg_stat_replication")
            wait_until(
                lambda: list(connection.execute(state).scalars()) == ["sync"],
                "the standby follows",
                WAIT_S,
            )
        engine.dispose()

    def kill_primary(self) -> None:
        """End the primary at once, without any order."""
        process = self._primary.process
        assert process is not None
        process.send_signal(signal.SIGQUIT)
        process.wait(WAIT_S)

    def promote(self) -> None:
        """Let the standby take over. It has no standby then."""
        data = self._standby.folder / "data"
        command: list[str | Path] = [self._programs / "pg_ctl", "promote", "-w", "-D", data]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._user)
        assert done.returncode == 0, done.stdout + done.stderr
        self._primary, self._standby = self._standby, self._primary

    def start_primary(self) -> None:
        """Start the first primary."""
        self._start(self._primary)

    def make_standby(self) -> None:
        """Make the other server anew, as a standby of the primary."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._standby.folder / "data")
        _copy(self._programs, self.primary, self._standby.folder, self._user)
        self._start(self._standby)

    def _start(self, server: Server) -> None:
        served = _served(self._programs, server.folder, server.url, self._user)
        server.process = self._stack.enter_context(served)


@contextmanager
def pair() -> Iterator[Pair]:
    """Both servers, until the block ends."""
    programs, user = programs_there(), account()
    with ExitStack() as stack:
        one, other = (stack.enter_context(_folder(user)) for _ in range(2))
        password = secrets.token_urlsafe(16)
        for folder in (one, other):
            file = folder / "password"
            file.touch(0o600)
            file.write_text(password)
            if user:
                shutil.chown(file, user["user"], user["group"])
        initialise(programs, one, user)
        first, second = (Server(_url(password), folder) for folder in (one, other))
        made = Pair(programs, user, first, second, stack)
        made.start_primary()
        made.make_standby()
        yield made


def _url(password: str) -> URL:
    """Where a new server is to be reached."""
    return URL.create("postgresql+psycopg", "postgres", password, LOOPBACK, free_port(), "postgres")


@contextmanager
def _folder(user: dict[str, Any]) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    if user:
        shutil.chown(folder, user["user"], user["group"])
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _served(
    programs: Path, folder: Path, url: URL, user: dict[str, Any]
) -> Iterator[subprocess.Popen[bytes]]:
    with (
        running(programs, folder, url.port or 0, user, _OPTIONS) as process,
        closing(PostgresqlServer(url)) as server,
    ):
        log = folder / "log"
        wait_until(server.ready, f"PostgreSQL answers: {log.read_text(errors='replace')}", WAIT_S)
        yield process


def _copy(programs: Path, url: URL, folder: Path, user: dict[str, Any]) -> None:
    """Make a standby's data out of those of the server that runs at that URL."""
    command: list[str | Path] = [programs / "pg_basebackup", "-D", folder / "data"]
    command += ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
    command += ["-d", f"host={LOOPBACK} port={url.port} user=postgres application_name={_STANDBY}"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PGPASSWORD": str(url.password)},
        capture_output=True,
        text=True,
        check=False,
        **user,
    )
    assert done.returncode == 0, done.stderr
