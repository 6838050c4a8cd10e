"""A server of PostgreSQL and a standby of it, which takes over."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
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
class Pair:
    """Both servers. `url` names both of them, and the database of the catalog."""

    primary: URL
    standby: URL
    _process: subprocess.Popen[bytes]
    _promote: list[str | Path]
    _user: dict[str, Any]

    @property
    def url(self) -> str:
        """The URL by which the platform finds whichever is the primary."""
        hosts = [f"{LOOPBACK}:{each.port}" for each in (self.primary, self.standby)]
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
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(WAIT_S)

    def promote(self) -> None:
        """Let the standby take over."""
        done = subprocess.run(
            self._promote, capture_output=True, text=True, check=False, **self._user
        )
        assert done.returncode == 0, done.stdout + done.stderr


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
        urls = [
            URL.create(
                "postgresql+psycopg", "postgres", password, LOOPBACK, free_port(), "postgres"
            )
            for _ in range(2)
        ]
        process = stack.enter_context(_served(programs, one, urls[0], user))
        _copy(programs, urls[0], other, user)
        stack.enter_context(_served(programs, other, urls[1], user))
        promote: list[str | Path] = [programs / "pg_ctl", "promote", "-w", "-D", other / "data"]
        yield Pair(urls[0], urls[1], process, promote, user)


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
