"""Each client reads on while a second stream is granted, and later revoked.

The clients are fetched from their registries, so this runs in the long lane alone. The table that
is printed is what docs/clients.md says.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.console import console_command
from deploy.runtime import Runtime, ensure_runtime
from deploy.scenario.person import COMMAND, Person
from deploy.stack import Stack, StackOptions
from tests.clients.flow import PER_SECOND, Flow
from tests.clients.java import PROGRAMS, compiled, fetched_jars
from tests.clients.reader import Reader
from tests.requirements import missing

pytestmark = [pytest.mark.long, pytest.mark.slow]

HERE = Path(__file__).parent
BOTH = """\
SELECT ts, n, 'one' AS stream FROM one UNION ALL SELECT ts, n, 'two' AS stream FROM two
"""
PATIENCE_S = 90.0
INFINITY = float("inf")
# Records of the second stream while it may be read, and after the revocation.
READ, AFTER = 30 * PER_SECOND, 15 * PER_SECOND
# These lose no time over a change of rights that leaves them the first stream: they wait no longer
# than that beyond the client that waits least. (The platform's own waits are the subject of
# tests/integration/test_without_gaps.py.)
WITHOUT_A_WAIT = ("secadmin", "confluent-kafka", "kafka-python", "aiokafka", "java")
LONGEST_WAIT_S = 3.0
GROUPS = {
    "of-python": ("secadmin", "confluent-kafka", "kafka-python", "aiokafka"),
    "of-others": ("confluent-kafka", "java", "kafkajs", "console", "kcat"),
    "spark": ("confluent-kafka", "spark"),
    "flink": ("confluent-kafka", "flink"),
}


@dataclass(frozen=True)
class Client:
    """How to run a client for the folder of an access; `again` if it ends when it is denied."""

    command: Callable[[Path], list[str]]
    again: bool = False


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_runtime()


@pytest.fixture(scope="module")
def clients(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Client]:
    """Each client by its name; fetched from the registries."""
    home = tmp_path_factory.mktemp("clients")
    packages, node = home / "python", home / "kafkajs"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(packages)]
    subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)
    shutil.copytree(PROGRAMS / "kafkajs", node)
    if not all(map(shutil.which, ("npm", "javac", "kcat"))):
        missing("npm, javac and kcat")
    subprocess.run(["npm", "ci", "--silent"], cwd=node, check=True)
    java = compiled(runtime, "JavaReader", runtime.jars.broker, home)
    flink = compiled(
        runtime, "FlinkReader", fetched_jars(runtime, "flink", home / "flink"), home, heap=512
    )

    def python(program: str, *more: Path) -> Callable[[Path], list[str]]:
        start = f"import sys; sys.path.insert(0, {str(packages)!r}); import runpy; "
        start += f"runpy.run_path({str(PROGRAMS / program)!r}, run_name='__main__')"
        return lambda folder: [sys.executable, "-u", "-c", start, str(folder), *map(str, more)]

    return {
        "secadmin": Client(lambda folder: [str(COMMAND), "consume", str(folder)]),
        "confluent-kafka": Client(python("confluent_reader.py")),
        "kafka-python": Client(python("kafka_python_reader.py")),
        "aiokafka": Client(python("aiokafka_reader.py")),
        "java": Client(lambda folder: java.command(str(folder), of(folder))),
        "flink": Client(lambda folder: flink.command(str(folder), of(folder))),
        "kafkajs": Client(lambda folder: ["node", str(node / "reader.js"), str(folder)]),
        "console": Client(lambda folder: console_command(runtime, folder, []), again=True),
        "kcat": Client(kcat(home), again=True),
        "spark": Client(python("spark_reader.py", home / "spark", runtime.jars.connector)),
    }


def kcat(home: Path) -> Callable[[Path], list[str]]:
    """Kcat with the library of the package confluent-kafka: Debian's own cannot log in."""
    import confluent_kafka  # noqa: PLC0415 -- only its place is of interest

    libraries = Path(str(confluent_kafka.__file__)).parent.parent / "confluent_kafka.libs"
    (library,) = libraries.glob("librdkafka*.so*")
    (home / "lib").mkdir()
    (home / "lib" / "librdkafka.so.1").symlink_to(library)

    def command(folder: Path) -> list[str]:
        group = json.loads((folder / "subscription.json").read_text())["group_prefix"] + "main"
        lend = ["env", f"LD_LIBRARY_PATH={home / 'lib'}", "kcat", "-u", "-q"]
        own = ["-F", str(folder / "librdkafka.conf"), "-X", "session.timeout.ms=6000"]
        return [*lend, *own, "-G", group, of(folder)]

    return command


def of(folder: Path) -> str:
    """The pattern of an access's topics."""
    return str(json.loads((folder / "subscription.json").read_text())["topic_pattern"])


@dataclass(frozen=True)
class Exchange:
    """The platform with records that flow to two streams, and a user who may read the first."""

    admin: Person
    user: Person
    flows: dict[str, Flow]


@pytest.fixture(scope="module")
def exchange(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    state = tmp_path_factory.mktemp("platform") / "state"
    options = StackOptions(state, broker_port=0, secadmin_port=0, batch_ms=2_000)
    with Stack(options, runtime) as stack, ExitStack() as ending:
        admin, user = Person.at(stack, "admin"), Person.at(stack, "rita")
        admin.log_in(stack.settings.secadmin.first_password_file.read_text().strip())
        admin.run("schema", "add", "numbered", "ts:timestamp!", "n:bigint!")
        flows = {}
        for stream in ("one", "two"):
            timed = ("--event-time", "ts", "--time", "data")
            admin.run("stream", "add", stream, "--schema", "numbered", *timed)
            admin.run("grant", "ADMIN", "SEND", "on", "stream", stream)
            admin.run("sender", stream, "--dir", str(admin.folder / stream))
            flows[stream] = Flow(stream, admin.folder / stream)
        admin.run("query", "add", "both", "-", "--language", "sql", text=BOTH)
        admin.run("role", "add", "READER")
        one_time = admin.ask("user", "add", user.name)["password"]
        admin.run("user", "assign", user.name, "READER")
        admin.run("grant", "READER", "VIEW OBJECT, SUBSCRIBE", "on", "output", "both")
        admin.run("grant", "READER", "READ TUPLE", "on", "stream", "one")
        user.log_in(one_time)
        for flow in flows.values():
            flow.start()
            ending.callback(flow.stop)
        yield Exchange(admin, user, flows)


def wait_until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Wait for it; whether it came in time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def wait_for(readers: list[Reader], stream: str, numbers: set[int]) -> None:
    """Wait until all have these records of the stream, or for so long as is patient."""
    wait_until(lambda: all(numbers <= each.numbers(stream) for each in readers))


@pytest.mark.parametrize("group", GROUPS)
def test_readers_go_on_while_a_stream_is_granted_and_revoked(
    exchange: Exchange, clients: dict[str, Client], group: str, tmp_path: Path
) -> None:
    admin, user, one, two = exchange.admin, exchange.user, *exchange.flows.values()
    with ExitStack() as ending:
        readers = []
        for name in GROUPS[group]:
            folder = tmp_path / name
            user.run("subscribe", "both", "--dir", str(folder))
            made = Reader(name, clients[name].command(folder), tmp_path / f"{name}.log")
            made.again = clients[name].again
            readers.append(ending.enter_context(made))
            ending.callback(user.run, "unsubscribe", str(folder))
        # Each has all that was sent since it may read, and does so now.
        begun = time.monotonic()
        wait_until(lambda: len(one.sent(begun, INFINITY)) > 5 * PER_SECOND)
        wait_for(readers, "one", one.sent(begun, time.monotonic()))
        granting_at = time.monotonic()
        admin.run("grant", "READER", "READ TUPLE", "on", "stream", "two")
        assert wait_until(lambda: all(row["fed"] for row in user.ask("accesses")))
        fed_at = time.monotonic()
        wait_until(lambda: len(two.sent(fed_at, INFINITY)) > READ)
        wait_for(readers, "two", two.sent(fed_at, time.monotonic()))
        revoking_at = time.monotonic()
        admin.run("revoke", "READER", "READ TUPLE", "on", "stream", "two")
        revoked_at = time.monotonic()
        wait_until(lambda: len(two.sent(revoked_at, INFINITY)) > AFTER)
        wait_for(readers, "one", one.sent(begun, time.monotonic()))

    must = {
        "one": one.sent(begun, revoked_at + AFTER / PER_SECOND),
        "two": two.sent(fed_at, revoking_at - 1),
    }
    late = two.sent(revoked_at, INFINITY)
    waits = {each.name: each.longest_wait_s("one", granting_at) for each in readers}
    lacks = {
        (each.name, stream): sorted(numbers - each.numbers(stream))
        for stream, numbers in must.items()
        for each in readers
    }
    for each in readers:
        missed = [len(lacks[each.name, stream]) for stream in must]
        errors = sorted({error[:160] for error in each.errors})
        print(f"{each.name}: wait {waits[each.name]:.1f} s, missed {missed}", end=", ")
        print(f"ended {each.ends} times, {len(each.errors)} errors: {errors}")
    for each in readers:
        assert not each.numbers("two") & late, f"{each.name} got what came after the revocation"
    assert not any(lacks.values()), {name: gap[:5] for name, gap in lacks.items() if gap}
    most = min(waits.values()) + LONGEST_WAIT_S
    slow = {name for name in WITHOUT_A_WAIT if waits.get(name, 0.0) > most}
    assert not slow, waits
