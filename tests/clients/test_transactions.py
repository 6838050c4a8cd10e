"""A job of Flink that writes exactly once fails half-way, and each of its records comes once.

Flink is fetched, so this runs in the long lane alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.runtime import ensure_runtime
from deploy.scenario.person import Person
from deploy.stack import Stack, StackOptions
from tests.clients.java import JavaProgram, compiled, flink_jars
from tests.requirements import missing

pytestmark = [pytest.mark.long, pytest.mark.slow]

COUNT = 400
PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """The administrator, who may send to a stream and reads all of it by a subscription."""
    state = tmp_path_factory.mktemp("platform") / "state"
    with Stack(StackOptions(state, broker_port=0, secadmin_port=0), ensure_runtime()) as stack:
        admin = Person.at(stack, "admin")
        admin.log_in(stack.settings.secadmin.first_password_file.read_text().strip())
        admin.run("schema", "add", "numbered", "ts:timestamp!", "n:bigint!")
        admin.run("stream", "add", "numbers", "--schema", "numbered", "--event-time", "ts")
        admin.run("grant", "ADMIN", "SEND, READ TUPLE", "on", "stream", "numbers")
        admin.run("sender", "numbers", "--dir", str(admin.folder / "sender"))
        query = "SELECT ts, n FROM numbers"
        admin.run("query", "add", "all", "-", "--language", "sql", text=query)
        admin.run("subscribe", "all", "--dir", str(admin.folder / "all"))
        yield admin


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> JavaProgram:
    if shutil.which("javac") is None:
        missing("javac")
    home, runtime = tmp_path_factory.mktemp("flink"), ensure_runtime()
    return compiled(runtime, "FlinkWriter", flink_jars(runtime, home), home, heap=512)


def test_each_record_of_a_job_that_failed_comes_once(
    admin: Person, writer: JavaProgram, tmp_path: Path
) -> None:
    folder = admin.folder / "sender"
    topic = json.loads((folder / "sender.json").read_text())["topic"]
    log = tmp_path / "log"
    with log.open("wb") as told:
        done = subprocess.run(
            writer.command(str(folder), topic, str(COUNT)),
            stdout=told,
            stderr=told,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, log.read_text()[-2000:]
    told_all = admin.run(
        *("consume", str(admin.folder / "all"), "--from", "beginning"),
        *("--max", str(COUNT), "--timeout", "60"),
    )
    lines = [line.partition("\t")[0] for line in told_all.splitlines()]
    came = Counter(json.loads(line)["n"] for line in lines)
    assert came == Counter(range(COUNT))
    more = admin.run("consume", str(admin.folder / "all"), "--from", "beginning", "--timeout", "10")
    assert len(more.splitlines()) == COUNT, "nothing comes twice"
