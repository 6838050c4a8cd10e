"""Clients that send: each of their records comes once, also where a job fails or aborts.

Flink and Kafka Connect are fetched, so this runs in the long lane alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.console import console_command
from deploy.runtime import Runtime, ensure_runtime
from deploy.scenario.person import Person
from deploy.stack import Stack, StackOptions
from tests.clients.connect import connect_command
from tests.clients.java import compiled, fetched_jars
from tests.integration.flowing import now_text
from tests.requirements import missing

pytestmark = [pytest.mark.long, pytest.mark.slow]

COUNT = 400
PATIENCE_S = 240.0
# A client may take long to start.
IN_TIME = ("--lateness", "60s")
# The stream of each test is of its own, and each query reads all of one.
STREAMS = ("of_flink", "of_java", "of_connect", "of_console")


@dataclass(frozen=True)
class Sender:
    """The administrator, who may send to a stream and reads all of it by a subscription."""

    person: Person
    stream: str

    @property
    def folder(self) -> Path:
        """What `secadmin sender` wrote."""
        return self.person.folder / f"sender-{self.stream}"

    @property
    def topic(self) -> str:
        """Where its records go."""
        return str(json.loads((self.folder / "sender.json").read_text())["topic"])

    def prepare(self) -> None:
        """Add the stream, and a query that reads it."""
        self.person.run(
            "stream", "add", self.stream, "--schema", "numbered", "--event-time", "ts", *IN_TIME
        )
        self.person.run("grant", "ADMIN", "SEND, READ TUPLE", "on", "stream", self.stream)
        self.person.run("sender", self.stream, "--dir", str(self.folder))
        query = f"SELECT ts, n FROM {self.stream}"
        self.person.run("query", "add", f"all_{self.stream}", "-", "--language", "sql", text=query)
        self.person.run("subscribe", f"all_{self.stream}", "--dir", str(self._results))

    def check_that_each_came_once(self) -> None:
        """Wait for all records, and see that no other one comes."""
        told = self._consumed("--max", str(COUNT), "--timeout", "60")
        assert Counter(each["n"] for each in told) == Counter(range(COUNT))
        assert len(self._consumed("--timeout", "10")) == COUNT, "nothing comes twice"

    @property
    def _results(self) -> Path:
        return self.person.folder / f"all-{self.stream}"

    def _consumed(self, *options: str) -> list[dict[str, object]]:
        told = self.person.run("consume", str(self._results), "--from", "beginning", *options)
        return [json.loads(line.partition("\t")[0]) for line in told.splitlines()]


@pytest.fixture(scope="module")
def senders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Sender]]:
    state = tmp_path_factory.mktemp("platform") / "state"
    with Stack(StackOptions(state, broker_port=0, secadmin_port=0), ensure_runtime()) as stack:
        admin = Person.at(stack, "admin")
        admin.log_in(stack.settings.secadmin.first_password_file.read_text().strip())
        admin.run("schema", "add", "numbered", "ts:timestamp!", "n:bigint!")
        found = {stream: Sender(admin, stream) for stream in STREAMS}
        for each in found.values():
            each.prepare()
        yield found


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    if shutil.which("javac") is None:
        missing("javac")
    return ensure_runtime()


def numbered() -> str:
    """Lines of JSON with the records that are sent."""
    now = now_text()
    return "".join(json.dumps({"ts": now, "n": number}) + "\n" for number in range(COUNT))


def run(command: list[str], log: Path, records: str = "") -> None:
    """Run a client to its end, with `records` on its input."""
    with log.open("wb") as told:
        done = subprocess.run(
            command,
            input=records.encode(),
            stdout=told,
            stderr=told,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, log.read_text()[-2000:]


def test_each_record_of_a_job_of_flink_that_failed_comes_once(
    senders: dict[str, Sender], runtime: Runtime, tmp_path: Path
) -> None:
    sender = senders["of_flink"]
    jars = fetched_jars(runtime, "flink", tmp_path)
    writer = compiled(runtime, "FlinkWriter", jars, tmp_path, heap=512)
    run(writer.command(str(sender.folder), sender.topic, str(COUNT)), tmp_path / "log")
    sender.check_that_each_came_once()


def test_what_a_program_in_java_aborts_does_not_come(
    senders: dict[str, Sender], runtime: Runtime, tmp_path: Path
) -> None:
    sender = senders["of_java"]
    writer = compiled(runtime, "JavaWriter", runtime.jars.broker, tmp_path)
    run(writer.command(str(sender.folder), sender.topic, str(COUNT)), tmp_path / "log")
    sender.check_that_each_came_once()


def test_each_line_of_a_file_that_kafka_connect_reads_comes(
    senders: dict[str, Sender], runtime: Runtime, tmp_path: Path
) -> None:
    """Its worker runs until it is ended."""
    sender, lines = senders["of_connect"], tmp_path / "lines"
    command = connect_command(runtime, sender.folder, sender.topic, lines, tmp_path)
    lines.write_text(numbered())
    log = tmp_path / "log"
    with log.open("wb") as told, subprocess.Popen(command, stdout=told, stderr=told) as worker:
        try:
            sender.check_that_each_came_once()
        finally:
            worker.terminate()


def test_each_line_of_the_console_producer_comes(
    senders: dict[str, Sender], runtime: Runtime, tmp_path: Path
) -> None:
    sender = senders["of_console"]
    run(console_command(runtime, sender.folder, []), tmp_path / "log", numbered())
    sender.check_that_each_came_once()
