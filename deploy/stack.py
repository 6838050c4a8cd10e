"""The whole platform as child processes: broker, SecAdmin, engines; stopped in reverse order."""

import os
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from catalog.engine_rights import QUERY
from catalog.engines import INGEST, PROBATION, all_engines
from catalog.errors import PlatformError
from catalog.settings import Settings
from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.broker_memory import DEFAULT_HEAP_MB
from deploy.certificates import ensure_certificates
from deploy.environment import ROOT
from deploy.errors import DeployError
from deploy.files import file_lock, private_folder
from deploy.hints import down_command
from deploy.part_names import ENGINE_PREFIX, SPARE, SUPERVISOR
from deploy.ports import free_port, require_free
from deploy.processes import LogTail, ManagedProcess
from deploy.readiness import healthy, wait_until
from deploy.runtime import Runtime
from deploy.settings import (
    Table,
    engine_settings,
    local_kafka,
    local_settings,
    merged,
    read_overrides,
    to_toml,
    write_settings,
)
from deploy.stopping import batches_end_s, end_engines, engines_in
from secfilter.life import READY_FILE
from secfilter.spare import SPARE_FILE

SECADMIN_TIMEOUT_S = 180.0
ENGINE_TIMEOUT_S = 180.0
BROKER_PORT = 19092
SECADMIN_PORT = 18443


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
        engines: How many engines run queries, unless `settings` says it.
        spare: Whether the supervisor keeps a spare engine, unless `settings` says it.
    """

    state: Path
    broker_port: int = BROKER_PORT
    secadmin_port: int = SECADMIN_PORT
    settings: Path | None = None
    broker_heap_mb: int = DEFAULT_HEAP_MB
    detached: bool = False
    batch_ms: int | None = None
    engines: int = 1
    spare: bool = False


class Stack:
    """The running platform; a context manager that leaves nothing running.

    Attributes:
        state: The deployment's folder, absolute.
        settings_file: What SecAdmin reads; written by `start`, as are the engines' files.
        broker: The embedded broker, or None with a Kafka of somebody else.
        secadmin: The process of the control service.
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
    def engines(self) -> dict[str, ManagedProcess]:
        """The process of each engine, by the engine's name; after `start`."""
        names = all_engines(self.settings.secfilter.spaces.count)
        return {name: ManagedProcess(f"{ENGINE_PREFIX}{name}", self.state) for name in names}

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
            missing = [name for name, process in self.engines.items() if process.mark is None]
            for name in missing:
                undo.callback(self.engines[name].stop)
            self.start_engines(missing)
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

    def start_engines(self, names: Collection[str]) -> None:
        """Start these engines at once, and wait until all engines say that they are ready."""
        logs = {name: LogTail(process.log) for name, process in self.engines.items()}
        for name in names:
            self.launch_engine(name, asks=name == PROBATION)
        for name, log in logs.items():
            ready = self.ready_file(name).exists
            wait_until(ready, self.engines[name], log, ENGINE_TIMEOUT_S)

    def kill_engines(self) -> None:
        """SIGKILL to all engines, and wait until they are gone."""
        for process in self.engines.values():
            process.kill()

    def launch_secadmin(self) -> None:
        """Start the control service with the settings as they are; wait for nothing."""
        self._launch(self.secadmin, "secadmin", self.settings_file)

    def launch_engine(self, name: str, *, asks: bool = False) -> None:
        """Start that engine with the settings as they are; wait for nothing.

        One that `asks` ends if there is a spare that can take its place (`deploy.spare`). Ingest
        has settings of its own, and no spare.
        """
        process = self.engines[name]
        process.require_stopped()
        self.ready_file(name).unlink(missing_ok=True)
        ready = {READY_FILE: str(self.ready_file(name))}
        if asks and name != INGEST:
            ready[SPARE_FILE] = str(self.spare_file)
        file = self._engine_settings_file(INGEST if name == INGEST else QUERY)
        self._launch(process, "secfilter", file, ["--engine", name], ready)

    @property
    def spare(self) -> ManagedProcess:
        """The process of the spare engine."""
        return ManagedProcess(SPARE, self.state)

    @property
    def spare_file(self) -> Path:
        """The file that is there while the spare engine can be asked for."""
        return self.state / "run" / f"{SPARE}.ready"

    def launch_spare(self) -> None:
        """Start the spare engine, which takes the place of any engine for queries."""
        self.spare_file.unlink(missing_ok=True)
        files = dict.fromkeys((READY_FILE, SPARE_FILE), str(self.spare_file))
        query = self._engine_settings_file(QUERY)
        self._launch(self.spare, "secfilter", query, ["--spare"], files)

    def engine_sign(self, name: str) -> str:
        """What the engine has said last to whoever watches it; empty until it is ready."""
        try:
            return self.ready_file(name).read_text()
        except OSError:
            return ""

    def stop(self) -> None:
        """Stop what runs, in reverse order of start."""
        self._supervisor.stop()
        self.spare.kill()
        engines = engines_in(self.state)
        end_engines(engines, batches_end_s(self.settings_file))
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
        parts = (self.secadmin, *engines_in(self.state))
        running = [part.name for part in parts if part.mark is not None]
        if running and not self._secadmin_port:
            self._secadmin_port = self.settings.secadmin.port
        table = self._table()
        if running and to_toml(table) != before:
            raise DeployError(
                f"these run with other settings ({', '.join(running)}): give the same, "
                f"or stop everything with `{down_command(self.state)}`"
            )
        write_settings(table, self.settings_file)
        for account in (INGEST, QUERY):
            write_settings(engine_settings(table, account), self._engine_settings_file(account))

    def _engine_settings_file(self, account: str) -> Path:
        return self.state / f"settings-{account}.toml"

    def _table(self) -> Table:
        certificates = ensure_certificates(self.state / "certificates")
        self._secadmin_port = self._secadmin_port or free_port()
        table = local_settings(
            self.state,
            certificates,
            self._secadmin_port,
            self.runtime.jars.connector,
            self.options.engines,
            spare=self.options.spare,
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
        )
        return {"kafka": kafka}

    def _await_secadmin(self, log: LogTail) -> None:
        where = self.settings.secadmin
        serves = partial(healthy, where.host, where.port, where.ca_file)
        wait_until(serves, self.secadmin, log, SECADMIN_TIMEOUT_S)

    def ready_file(self, engine: str) -> Path:
        """The file in which the engine says that it is ready and goes on."""
        return self.state / "run" / f"{ENGINE_PREFIX}{engine}.ready"

    def _supervise(self) -> None:
        """Start the supervisor anew: another start may have given it other options."""
        self._supervisor.stop()
        command = [sys.executable, "-m", "deploy.supervisor", "--state", str(self.state)]
        command += ["--broker-heap", str(self.options.broker_heap_mb)]
        if self.options.settings is not None:
            command += ["--settings", str(self.options.settings.resolve())]
        self._supervisor.start(command, self._path(), folder=self.state, detached=True)

    def _launch(
        self,
        process: ManagedProcess,
        package: str,
        settings: Path,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        process.start(
            [sys.executable, "-m", package, "--settings", str(settings), *arguments],
            {**self._environment(), **(environment or {})},
            folder=self.state,
            detached=self.options.detached,
        )

    def _environment(self) -> dict[str, str]:
        """Spark finds Java through JAVA_HOME: the one that was checked, and no other."""
        java = self.runtime.java.resolve().parent.parent
        return {**self._path(), "JAVA_HOME": str(java)}

    def _path(self) -> dict[str, str]:
        known = os.environ.get("PYTHONPATH")
        return {"PYTHONPATH": os.pathsep.join([str(ROOT), *([known] if known else [])])}


def last_secadmin_port(state: Path) -> int | None:
    """SecAdmin's port of the last start in that folder, if there was one."""
    return _last_number(state, "secadmin", "port")


def last_engines(state: Path) -> int | None:
    """How many engines ran queries at the last start in that folder, if there was one."""
    return _last_number(state, "secfilter", "engines")


def last_spare(state: Path) -> bool | None:
    """Whether the last start in that folder asked for a spare engine; None if it did not say."""
    last = _last_number(state, "secfilter", "spare")
    return None if last is None else bool(last)


def _last_number(state: Path, table: str, name: str) -> int | None:
    """A number in the settings of the last start, also where an earlier version wrote them."""
    try:
        value = tomllib.loads((state / "settings.toml").read_text())[table][name]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError):
        return None
    return value if isinstance(value, int) else None
