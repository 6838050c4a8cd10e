"""Each client reads on while a second stream is granted, and later revoked.

The clients are fetched from their registries, so this runs in the long lane alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.runtime import Runtime, ensure_runtime
from deploy.scenario.listener import read_settings
from deploy.scenario.person import COMMAND, Person
from deploy.stack import Stack, StackOptions
from tests.clients.reader import Reader
from tests.requirements import missing

pytestmark = [pytest.mark.long, pytest.mark.slow]

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
READS = "reads"
BOTH = """\
SELECT ts, n, 'one' AS stream FROM one UNION ALL SELECT ts, n, 'two' AS stream FROM two
"""
PER_SECOND, PATIENCE_S = 40, 120.0
# These lose no time over a change of rights that leaves them the first stream.
WITHOUT_A_WAIT = ("confluent-kafka", "kafka-python", "java", "secadmin")
LONGEST_WAIT_S = 3.0
INFINITY = float("inf")
# Records of the second stream while it may be read, and after the revocation.
READ, AFTER = 30 * PER_SECOND, 10 * PER_SECOND
Command = Callable[[Path], list[str]]


@dataclass
class Flow:
    """Sends numbered records to a stream at a steady rate until it is stopped."""

    stream: str
    folder: Path
    sent_at: dict[int, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, name=f"send {self.stream}")
        self._thread.start()

    def stop(self) -> None:
        """End; the broker has acknowledged all of it when the call returns."""
        self._stop.set()
        self._thread.join()

    def sent(self, begin: float, end: float) -> set[int]:
        """The numbers that were sent between these times."""
        return {number for number, at in dict(self.sent_at).items() if begin <= at < end}

    def _run(self) -> None:
        topic = json.loads((self.folder / "sender.json").read_text())["topic"]
        settings = read_settings(self.folder / "librdkafka.conf")
        producer = Producer({**settings, "linger.ms": 5, "log_level": 0})
        while not self._stop.wait(1 / PER_SECOND):
            number = len(self.sent_at)
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            producer.produce(topic, json.dumps({"ts": now, "n": number}).encode())
            self.sent_at[number] = time.monotonic()
            producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_runtime()


@pytest.fixture(scope="module")
def clients(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Command]:
    """Each client's command for the folder of an access; fetched from the registries."""
    home = tmp_path_factory.mktemp("clients")
    packages, node = home / "python", home / "kafkajs"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(packages)]
    subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)
    shutil.copytree(PROGRAMS / "kafkajs", node)
    if shutil.which("npm") is None or shutil.which("javac") is None:
        missing("npm and javac")
    subprocess.run(["npm", "ci", "--silent"], cwd=node, check=True)
    jars = f"{runtime.jars.broker}/*"
    java = ["-cp", jars, "-d", str(home), str(PROGRAMS / "JavaReader.java")]
    subprocess.run(["javac", "--release", "17", *java], check=True)

    def python(program: str) -> Command:
        start = f"import sys; sys.path.insert(0, {str(packages)!r}); import runpy; "
        start += f"runpy.run_path({str(PROGRAMS / program)!r}, run_name='__main__')"
        return lambda folder: [sys.executable, "-u", "-c", start, str(folder)]

    def by_java(folder: Path) -> list[str]:
        pattern = json.loads((folder / "subscription.json").read_text())["topic_pattern"]
        path = f"{home}{os.pathsep}{jars}"
        return [str(runtime.java), "-Xmx128m", "-cp", path, "JavaReader", str(folder), pattern]

    return {
        "secadmin": lambda folder: [str(COMMAND), "--json", "consume", str(folder)],
        "confluent-kafka": python("confluent_reader.py"),
        "kafka-python": python("kafka_python_reader.py"),
        "aiokafka": python("aiokafka_reader.py"),
        "java": by_java,
        "kafkajs": lambda folder: ["node", str(node / "reader.js"), str(folder)],
    }


@pytest.fixture
def stack(runtime: Runtime, tmp_path: Path) -> Iterator[Stack]:
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=2_000)
    with Stack(options, runtime) as started:
        yield started


def prepare(stack: Stack) -> tuple[Person, Person]:
    """Two streams, a query over both, and a user who may read the first stream."""
    admin, user = Person.at(stack, "admin"), Person.at(stack, "rita")
    admin.log_in(stack.settings.secadmin.first_password_file.read_text().strip())
    admin.run("schema", "add", "numbered", "ts:timestamp!", "n:bigint!")
    for stream in ("one", "two"):
        timed = ("--event-time", "ts", "--time", "data")
        admin.run("stream", "add", stream, "--schema", "numbered", *timed)
        admin.run("grant", "ADMIN", "SEND, READ TUPLE", "on", "stream", stream)
    (admin.folder / "both.sql").write_text(BOTH)
    admin.run("query", "add", "both", str(admin.folder / "both.sql"))
    admin.run("role", "add", "READER")
    one_time = admin.ask("user", "add", user.name)["password"]
    admin.run("user", "assign", user.name, "READER")
    admin.run("grant", "READER", "VIEW CATALOG", "on", "system")
    admin.run("grant", "READER", "VIEW OBJECT, SUBSCRIBE", "on", "output", "both")
    admin.run("grant", "READER", "READ TUPLE", "on", "stream", "one")
    user.log_in(one_time)
    return admin, user


def wait_until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def test_readers_go_on_while_a_stream_is_granted_and_revoked(
    stack: Stack, clients: dict[str, Command], tmp_path: Path
) -> None:
    admin, user = prepare(stack)
    flows = {}
    for stream in ("one", "two"):
        admin.run("sender", stream, "--dir", str(tmp_path / stream))
        flows[stream] = Flow(stream, tmp_path / stream)
    with ExitStack() as ending:
        readers = []
        for name, command in clients.items():
            folder = tmp_path / name
            user.run("subscribe", "both", "--dir", str(folder))
            readers.append(
                ending.enter_context(Reader(name, command(folder), tmp_path / f"{name}.log"))
            )
        for flow in flows.values():
            flow.start()
            ending.callback(flow.stop)

        def missing_of(stream: str, numbers: set[int]) -> dict[str, int]:
            """How many records each client still lacks."""
            lacks = {each.name: len(numbers - each.numbers(stream)) for each in readers}
            return {name: count for name, count in lacks.items() if count}

        def wait_for(stream: str, numbers: set[int]) -> None:
            wait_until(
                lambda: not missing_of(stream, numbers),
                lambda: f"{stream}: some have not arrived: {missing_of(stream, numbers)}",
            )

        wait_for("one", flows["one"].sent(0, time.monotonic()))
        assert all(not each.of("two") for each in readers)
        admin.run("grant", "READER", "READ TUPLE", "on", "stream", "two")
        wait_until(lambda: all(r["fed"] for r in user.ask("accesses")), lambda: "not fed in time")
        fed_at = time.monotonic()
        wait_until(lambda: len(flows["two"].sent(fed_at, INFINITY)) > READ, lambda: "not sent")
        before = time.monotonic()
        wait_for("two", flows["two"].sent(fed_at, before))
        revoking_at = time.monotonic()
        admin.run("revoke", "READER", "READ TUPLE", "on", "stream", "two")
        revoked_at = time.monotonic()
        wait_until(lambda: len(flows["two"].sent(revoked_at, INFINITY)) > AFTER, lambda: "not sent")
        wait_for("two", flows["two"].sent(fed_at, revoking_at - 1))
        wait_for("one", flows["one"].sent(0, time.monotonic()))
        for each in readers:
            late = each.numbers("two") & flows["two"].sent(revoked_at, INFINITY)
            assert late == set(), f"{each.name} got records that were sent after the revocation"
        waits = {each.name: each.longest_wait_s("one") for each in readers}
        print(waits)
        assert {name for name in WITHOUT_A_WAIT if waits[name] > LONGEST_WAIT_S} == set(), waits
