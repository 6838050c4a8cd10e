"""The README's five minutes by hand, played as they stand on a fresh platform.

The block stops the platform at its end. Then the platform starts again, and still takes records.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from deploy.environment import ROOT
from deploy.ports import free_port
from deploy.runtime import Runtime
from deploy.stopping import stop_all
from tests.integration.killing import kill_everything

DEFAULT_PORT = "18443"
WITHIN_S = 400


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


def _up(state: Path, port: int) -> None:
    command = [sys.executable, "-m", "deploy", "up", "--state", str(state)]
    command += ["--port", str(free_port(port)), "--secadmin-port", str(port)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)


def _played(text: str, state: Path, port: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands in a shell, in a folder from which they look as from the repository."""
    assert DEFAULT_PORT in text
    text = text.replace(DEFAULT_PORT, str(port))
    text = text.replace("-m deploy down", f"-m deploy down --state {state}")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SECADMIN_")}
    return subprocess.run(
        ["bash", "-e"],
        input=text,
        cwd=folder,
        env={**kept, "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )


def test_records_show_and_after_the_revocation_none(runtime: Runtime, tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "here"
    folder.mkdir()
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / ".state").symlink_to(state)
    port = free_port()
    try:
        _up(state, port)
        played = _played(_block(), state, port, folder)
        left = stop_all(state)
        _up(state, port)
        after = _played(AFTERWARDS, state, port, folder)
    finally:
        # The block has stopped a platform in good order, which waits for the ends of batches.
        kill_everything(state)
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
    assert left == [], "the block stops the platform"
    assert after.returncode == 0, after.stdout + after.stderr
