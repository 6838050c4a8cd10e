"""The README's five minutes by hand, played as they are on a fresh platform.

The block stops the platform at its end. Then the platform starts again, and still takes records. It
brings back what dies, and `down` leaves nothing of it.
"""

import json
import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.environment import ROOT
from deploy.ports import free_port
from deploy.runtime import Runtime
from deploy.stopping import stop_all
from tests.integration.killing import kill_everything
from tests.integration.up_and_down import (
    comes_back_by_itself,
    command,
    is_completed,
    marks,
    processes_of,
)

DEFAULT_PORT = "18443"
WITHIN_S = 400


@dataclass(frozen=True)
class Place:
    """A platform that is started by hand, and a folder that looks like the repository.

    Attributes:
        state: The platform's own folder.
        folder: Where the commands are played.
        port: SecAdmin's.
        ports: The options of the first start.
    """

    state: Path
    folder: Path
    port: int
    ports: tuple[str, ...]


@pytest.fixture(scope="module")
def place(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state, folder = tmp_path_factory.mktemp("by-hand") / "state", tmp_path_factory.mktemp("here")
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / ".state").symlink_to(state)
    port = free_port()
    ports = ("--port", str(free_port(port)), "--secadmin-port", str(port))
    # (A spare engine would start while the commands are played, and nothing here needs it.)
    yield Place(state, folder, port, (*ports, "--no-spare"))
    kill_everything(state)


def _block() -> str:
    """The block of commands, as somebody would paste it."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    [found] = [block for block in blocks if "secadmin login" in block]
    return str(found)


# What still works after the block: it logs in to SecAdmin, and to the broker as a new user.
AFTERWARDS = """
. .venv/bin/activate
export SECADMIN_URL=https://127.0.0.1:18443 SECADMIN_CA=$PWD/.state/certificates/ca.pem
secadmin produce london trades.csv
"""


def _played(text: str, place: Place) -> subprocess.CompletedProcess[str]:
    """Run the commands in a shell, in a folder from which they look as from the repository."""
    assert DEFAULT_PORT in text
    text = text.replace(DEFAULT_PORT, str(place.port))
    text = text.replace("-m deploy down", f"-m deploy down --state {place.state}")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SECADMIN_")}
    return subprocess.run(
        ["bash", "-e"],
        input=text,
        cwd=place.folder,
        env={**kept, "HOME": str(place.folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )


def test_records_show_and_after_the_revocation_none(place: Place) -> None:
    up = command("up", "--state", str(place.state), *place.ports)
    assert up.returncode == 0, up.stderr
    assert "The platform is up." in up.stdout
    assert all(marks(place.state).values())
    played = _played(_block(), place)
    said = played.stdout + played.stderr
    assert played.returncode == 0, said
    lines = played.stdout.splitlines()
    [revoked] = [n for n, line in enumerate(lines) if line.startswith("revoked ")]
    records = {
        n: json.loads(line.split("\t")[0]) for n, line in enumerate(lines) if line[:1] == "{"
    }
    assert sorted(record["symbol"] for record in records.values()) == ["HSBA", "VOD"], said
    assert max(records) < revoked, said
    assert "intact: " in played.stdout
    assert "it is fed, after " in played.stderr
    assert stop_all(place.state) == [], "the block stops the platform"


def test_it_goes_on_after_a_stop_and_brings_back_what_dies(place: Place) -> None:
    options = ("--state", str(place.state))
    # The ports are those of the last start.
    up = command("up", *options)
    assert up.returncode == 0, up.stderr
    hint = up.stdout.splitlines()[-1].strip()
    assert hint == f"python3 -m deploy down --state {place.state}"
    try:
        after = _played(AFTERWARDS, place)
        assert after.returncode == 0, after.stdout + after.stderr
        comes_back_by_itself(place.state, *options)
        is_completed(place.state, *options)
        assert stat.S_IMODE((place.state / "logs").stat().st_mode) == 0o700
    finally:
        down = command(*shlex.split(hint)[3:])
    engines = "secfilter-query-1, secfilter-probation, secfilter-ingest"
    assert down.stdout == f"stopped: supervisor, {engines}, secadmin, broker\n"
    assert "ends with its batch" in down.stderr
    assert processes_of(place.state) == []
    assert stop_all(place.state) == []
