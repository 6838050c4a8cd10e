"""A Spark cluster on this machine: a master and workers as processes, from pyspark's own jars.

Their settings are those that docs/cluster.md gives to operators.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest

from deploy.runtime import Runtime
from deploy.settings import Table

ROOT = Path(__file__).parents[1]
CORES = 2048
_PAGE = ROOT / "docs" / "cluster.md"
_HOME = Path(pyspark.__path__[0])
_CLASSES = "org.apache.spark.deploy"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
# Small processes that are up soon.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": _JAVA}


def documented(secret: str, recovery: Path) -> str:
    """The settings file of masters and workers, as the page has it."""
    block = re.search(r"```properties\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    assert block is not None, "the page has the settings of masters and workers"
    text = block[1].replace("THE-SECRET", secret)
    return text.replace("/var/lib/streams/master", str(recovery))


@dataclass
class SparkCluster:
    """A master with workers. Each worker is a process group with its executors: one machine.

    `java` is the program.
    """

    folder: Path
    java: Path
    master: str = ""
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _masters: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> SparkCluster:
        for file, text in (
            (self.secret_file, self.secret),
            (self._settings, documented(self.secret, self.folder / "recovery")),
        ):
            file.touch(mode=0o600)
            file.write_text(text)
        try:
            self._launch_master("0")
            self._until(self._has_master, "the master does not start")
            for _ in range(2):
                self.add_worker()
            self._until(self._have_registered, "a worker has no master")
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def secret_file(self) -> Path:
        """The file with the secret, as an engine's settings name it."""
        return self.folder / "cluster.secret"

    @property
    def _settings(self) -> Path:
        return self.folder / "cluster.properties"

    @property
    def settings(self) -> Table:
        """What an engine's settings have for this cluster, in their part `[secfilter]`."""
        own: Table = {"host": "127.0.0.1", "secret_file": str(self.secret_file)}
        return {"master": self.master, "cluster": own, "options": dict(_EXECUTORS)}

    def add_worker(self) -> None:
        """Start one more worker. Returns at once."""
        name = f"worker-{len(self.workers)}"
        place = ("--work-dir", str(self.folder / name))
        offers = ("--cores", str(CORES), "--memory", "16g")
        process = self._launch(name, f"{_CLASSES}.worker.Worker", *place, *offers, self.master)
        self.workers.append(process)

    def kill_master(self) -> None:
        """Kill the master."""
        _end(self._masters[-1])

    def start_master(self) -> None:
        """Start the master again where the others know it to be. Returns at once."""
        self._launch_master(self.master.rpartition(":")[2])

    def kill(self, number: int) -> None:
        """Kill a worker and its executors, as if its machine had failed."""
        _end(self.workers[number])

    def executors(self, number: int) -> set[int]:
        """The processes of a worker's executors."""
        worker = self.workers[number].pid
        return _group(worker) - {worker}

    def kill_executors(self, number: int) -> None:
        """Kill the executors of a worker, and not the worker."""
        for pid in self.executors(number):
            os.kill(pid, signal.SIGKILL)

    def pause(self, number: int) -> None:
        """Stop a worker and its executors, until they are resumed."""
        os.killpg(self.workers[number].pid, signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let a paused worker go on."""
        os.killpg(self.workers[number].pid, signal.SIGCONT)

    def left(self) -> bytes:
        """All that master, workers and executors have written. Only their user can read it."""
        found = []
        for file in self.folder.rglob("*"):
            # The master may remove a file just now.
            with suppress(FileNotFoundError):
                assert not file.stat().st_mode & 0o066, f"others can read or write {file}"
                if file.is_file() and file not in {self.secret_file, self._settings}:
                    found.append(file.read_bytes())
        return b"\n".join(found)

    def end(self) -> None:
        """End all processes."""
        for process in reversed(self._processes):
            if process.poll() is None:
                _end(process)

    def _has_master(self) -> bool:
        said = _MASTER.search(self._log("master"))
        self.master = said[1] if said else ""
        return bool(said)

    def _have_registered(self) -> bool:
        return all(_REGISTERED in self._log(f"worker-{n}") for n in range(len(self.workers)))

    def _log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def _launch_master(self, port: str) -> None:
        self._masters.append(self._launch("master", f"{_CLASSES}.master.Master", "--port", port))

    def _launch(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--webui-port", "0")
        with (self.folder / f"{name}.log").open("wb") as log:
            os.fchmod(log.fileno(), 0o600)
            process = subprocess.Popen(
                [
                    *(str(_HOME / "bin" / "spark-class"), command[0]),
                    *(*where, "--properties-file", str(self._settings), *command[1:]),
                ],
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "SPARK_HOME": str(_HOME),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": _JAVA,
                    "JAVA_HOME": str(self.java.resolve().parents[1]),
                },
                start_new_session=True,
                umask=0o077,
            )
        self._processes.append(process)
        return process

    def _until(self, condition: Callable[[], bool], problem: str) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert all(p.poll() is None for p in self._processes), problem
            assert time.monotonic() < deadline, problem
            time.sleep(0.05)


def _end(leader: subprocess.Popen[bytes]) -> None:
    """Kill all processes of a group at once."""
    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()


def _group(leader: int) -> set[int]:
    """The processes of a group that have not ended."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name may have spaces. Behind it: the state, the parent, the group.
            _, _, behind = file.read_text().rpartition(")")
            state, _, group, *_ = behind.split()
            if int(group) == leader and state != "Z":
                found.add(int(file.parent.name))
    return found


@pytest.fixture
def spark_cluster(runtime: Runtime, tmp_path: Path) -> Iterator[SparkCluster]:
    """A cluster with two workers, for one test."""
    folder = tmp_path / "cluster"
    folder.mkdir(mode=0o700)
    with SparkCluster(folder, runtime.java) as started:
        yield started
