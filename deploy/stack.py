"""The whole platform as child processes: broker, SecAdmin, runner; stopped in reverse order."""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from catalog.errors import PlatformError
from catalog.settings import Settings
from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.broker_memory import DEFAULT_HEAP_MB
from deploy.certificates import ensure_certificates
from deploy.environment import ROOT
from deploy.errors import DeployError
from deploy.files import file_lock, private_folder
from deploy.hints import down_command
from deploy.ports import free_port, require_free
from deploy.processes import STOP_TIMEOUT_S, LogTail, ManagedProcess
from deploy.readiness import healthy, wait_until
from deploy.runtime import Runtime
from deploy.settings import (
    Table,
    local_kafka,
    local_settings,
    merged,
    read_overrides,
    to_toml,
    write_settings,
)
from secfilter.pace import Pace, pace_of

SECADMIN_TIMEOUT_S = 180.0
RUNNER_TIMEOUT_S = 180.0
# What the runner takes to end beside its batches.
RUNNER_LEAVES_S = 10.0
BROKER_PORT = 19092
SECADMIN_PORT = 18443
# In the order in which they are stopped.
NAMES = ("secfilter", "secadmin", "broker")
SUPERVISOR = "supervisor"


@dataclass(frozen=True)
class StackOptions:
    """How to run the platform.

    Attributes:
        state: Folder of everything that this deployment keeps (made with mode 0700).
        broker_port: Port of the embedded broker on 127.0.0.1; 0 finds a free one.
        secadmin_port: Port of SecAdmin's HTTPS service on 127.0.0.1; 0 finds a free one.
        settings: An operator's settings for an existing Kafka; no broker is started then.
        broker_heap_mb: Largest heap of the embedded broker, in MB.
        detached: Let the processes outlive this one, with a supervisor.
        batch_ms: Shortest batch of stateless queries and ingest, where it is not the usual one:
            what runs for a minute or two should not wait long until a new class is fed.
    """

    state: Path
    broker_port: int = BROKER_PORT
    secadmin_port: int = SECADMIN_PORT
    settings: Path | None = None
    broker_heap_mb: int = DEFAULT_HEAP_MB
    detached: bool = False
    batch_ms: int | None = None


class Stack:
    """The running platform; a context manager that leaves nothing running.

    Attributes:
        state: The deployment's folder, absolute.
        settings_file: What SecAdmin and the runner read; written by `start`.
        broker: The embedded broker, or None with a Kafka of somebody else.
        secadmin: The process of the control service.
        runner: The process of the Spark driver.
        lock: The file whose lock is held by whoever starts or stops parts.
    """

    def __init__(self, options: StackOptions, runtime: Runtime) -> None:
        """Prepare folders, certificates and secrets; nothing is started."""
        self.options = options
        self.runtime = runtime
        self.state = private_folder(options.state.resolve())
        self.settings_file = self.state / "settings.toml"
        self.broker = None if options.settings else self._embedded()
        # A free port, once found, is kept: clients know it.
        self._secadmin_port = options.secadmin_port
        self.secadmin = ManagedProcess("secadmin", self.state)
        self.runner = ManagedProcess("secfilter", self.state)
        self.lock = self.state / "run.lock"
        self._supervisor = ManagedProcess(SUPERVISOR, self.state)

    @property
    def settings(self) -> Settings:
        """The settings in force, as the platform's parts read them; after `start`.

        Raises:
            DeployError: They lack something, or misstate it.
        """
        try:
            return Settings.load(self.settings_file)
        except PlatformError as error:
            raise DeployError(str(error)) from error

    @property
    def secadmin_url(self) -> str:
        """Where SecAdmin serves, such as `https://127.0.0.1:18443`."""
        where = self.settings.secadmin
        return f"https://{where.host}:{where.port}"

    def start(self) -> None:
        """Start what does not run and return when all serves; on any failure stop what was started.

        Raises:
            DeployError: A part runs with other settings, a port is in use, or a part did not start.
        """
        with file_lock(self.lock), ExitStack() as undo:
            if self.broker is not None and self.broker.process.mark is not None:
                self.broker.require_same_port()
                self.broker.wait_for_login()
            elif self.broker is not None:
                self.broker.start()
                undo.callback(self.broker.stop)
            self._write_settings()
            if self.secadmin.mark is None:
                undo.callback(self.secadmin.stop)
                self.start_secadmin()
            else:
                self._await_secadmin(LogTail(self.secadmin.log))
            if self.runner.mark is None:
                undo.callback(self.runner.stop)
                self.start_runner()
            else:
                self._await_runner(LogTail(self.runner.log))
            if self.options.detached:
                self._supervise()
            undo.pop_all()

    def start_secadmin(self) -> None:
        """Start the control service alone and wait until `/health` answers."""
        where = self.settings.secadmin
        self.secadmin.require_stopped()
        require_free(where.port, "SecAdmin", "--secadmin-port")
        log = LogTail(self.secadmin.log)
        self.launch_secadmin()
        self._await_secadmin(log)

    def start_runner(self) -> None:
        """Start the Spark driver alone and wait until it says that it is ready."""
        log = LogTail(self.runner.log)
        self.launch_runner()
        self._await_runner(log)

    def launch_secadmin(self) -> None:
        """Start the control service with the settings as they are; wait for nothing."""
        self._launch(self.secadmin)

    def launch_runner(self) -> None:
        """Start the Spark driver with the settings as they are; wait for nothing."""
        self.runner.require_stopped()
        self._ready_file().unlink(missing_ok=True)
        self._launch(self.runner)

    def stop(self) -> None:
        """Stop what runs, in reverse order of start."""
        self._supervisor.stop()
        self.runner.stop(batches_end_s(self.settings_file) + RUNNER_LEAVES_S)
        self.secadmin.stop()
        if self.broker is not None:
            self.broker.stop()

    def __enter__(self) -> "Stack":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _embedded(self) -> EmbeddedBroker:
        settings = BrokerSettings(
            self.state,
            self.options.broker_port,
            self.runtime.java,
            self.runtime.jars.broker,
            self.options.broker_heap_mb,
            detached=self.options.detached,
        )
        return EmbeddedBroker(settings)

    def _write_settings(self) -> None:
        """Write the settings of this start; what runs has read those of an earlier one.

        Raises:
            DeployError: A part runs that has read others.
        """
        before = self.settings_file.read_text() if self.settings_file.exists() else ""
        running = [part.name for part in (self.secadmin, self.runner) if part.mark is not None]
        if running and not self._secadmin_port:
            self._secadmin_port = self.settings.secadmin.port
        table = self._table()
        if running and to_toml(table) != before:
            raise DeployError(
                f"{' and '.join(running)} runs with other settings than these: give the same, "
                f"or stop everything with `{down_command(self.state)}`"
            )
        write_settings(table, self.settings_file)

    def _table(self) -> Table:
        certificates = ensure_certificates(self.state / "certificates")
        self._secadmin_port = self._secadmin_port or free_port()
        table = local_settings(
            self.state, certificates, self._secadmin_port, self.runtime.jars.connector
        )
        return merged(table, merged(self._pace(), self._kafka()))

    def _pace(self) -> Table:
        if self.options.batch_ms is None:
            return {}
        length = str(self.options.batch_ms)
        options: Table = {"secfilter.query_ms": length, "secfilter.ingest_ms": length}
        return {"secfilter": {"options": options}}

    def _kafka(self) -> Table:
        if self.options.settings is not None:
            return read_overrides(self.options.settings)
        if self.broker is None:
            raise DeployError("there is neither an embedded broker nor settings for another")
        kafka = local_kafka(
            self.broker.platform_bootstrap,
            self.broker.bootstrap,
            self.broker.ca_file,
            self.broker.secadmin,
            self.broker.secfilter,
        )
        return {"kafka": kafka}

    def _await_secadmin(self, log: LogTail) -> None:
        where = self.settings.secadmin
        serves = partial(healthy, where.host, where.port, where.ca_file)
        wait_until(serves, self.secadmin, log, SECADMIN_TIMEOUT_S)

    def _await_runner(self, log: LogTail) -> None:
        wait_until(self._ready_file().exists, self.runner, log, RUNNER_TIMEOUT_S)

    def _ready_file(self) -> Path:
        return self.settings.secfilter.checkpoints.parent / "runner.ready"

    def _supervise(self) -> None:
        """Start the supervisor anew: another start may have given it other options."""
        self._supervisor.stop()
        command = [sys.executable, "-m", "deploy.supervisor", "--state", str(self.state)]
        command += ["--broker-heap", str(self.options.broker_heap_mb)]
        if self.options.settings is not None:
            command += ["--settings", str(self.options.settings.resolve())]
        self._supervisor.start(command, self._path(), folder=self.state, detached=True)

    def _launch(self, process: ManagedProcess) -> None:
        command = [sys.executable, "-m", process.name, "--settings", str(self.settings_file)]
        process.start(
            command, self._environment(), folder=self.state, detached=self.options.detached
        )

    def _environment(self) -> dict[str, str]:
        """Spark finds Java through JAVA_HOME: the one that was checked, and no other."""
        return {
            **self._path(),
            "JAVA_HOME": str(self.runtime.java.resolve().parent.parent),
            "SECFILTER_READY_FILE": str(self._ready_file()),
        }

    def _path(self) -> dict[str, str]:
        known = os.environ.get("PYTHONPATH")
        return {"PYTHONPATH": os.pathsep.join([str(ROOT), *([known] if known else [])])}


def last_secadmin_port(state: Path) -> int | None:
    """SecAdmin's port of the last start in that folder, if there was one."""
    try:
        return Settings.load(state / "settings.toml").secadmin.port
    except PlatformError:
        return None


def batches_end_s(settings_file: Path) -> float:
    """After how many seconds at most a runner with these settings has ended all its batches."""
    try:
        return pace_of(Settings.load(settings_file).secfilter.options).patience_s
    except PlatformError:
        # What cannot be read now was read when the runner started, most likely with usual lengths.
        return Pace().patience_s


def stop_all(state: Path, tell: Callable[[str], object] = lambda _: None) -> list[str]:
    """Stop what an earlier command left running in `state`; returns the names of what ran.

    What may take a while is told to `tell` before.
    """
    if not state.is_dir():
        return []
    batches_s = batches_end_s(state / "settings.toml")
    # First, and without the lock: while it waits for somebody who holds it, nothing is started.
    supervisor = ManagedProcess(SUPERVISOR, state.resolve())
    supervised = _ended(supervisor)
    with file_lock(state / "run.lock"):
        # Whoever held the lock may have started another.
        supervised |= _ended(supervisor)
        processes = [ManagedProcess(name, state.resolve()) for name in NAMES]
        running = [process for process in processes if process.mark is not None]
        if any(process.name == "secfilter" for process in running):
            tell(f"each query ends with its batch, which takes up to {batches_s:.0f} seconds")
        for process in running:
            waits = process.name == "secfilter"
            process.stop(batches_s + RUNNER_LEAVES_S if waits else STOP_TIMEOUT_S)
    return [*([SUPERVISOR] if supervised else []), *(process.name for process in running)]


def _ended(process: ManagedProcess) -> bool:
    """Stop the process; whether it ran."""
    runs = process.mark is not None
    if runs:
        process.stop(STOP_TIMEOUT_S)
    return runs
