"""A real Apache Kafka on the local JVM: format, start, wait for a log-in, stop.

One combined KRaft node; clients and controller over TLS with SASL, ACLs on, nothing open.
"""

import os
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from catalog.private_file import write_private
from deploy.broker_clients import ClientConfig, can_log_in, client_config
from deploy.broker_format import argument_file, format_arguments
from deploy.broker_memory import DEFAULT_HEAP_MB, RequestMemory
from deploy.broker_properties import (
    BROKER_USER,
    INGEST_USER,
    QUERY_USER,
    SECADMIN_USER,
    NodeFiles,
    Ports,
    broker_properties,
    render,
)
from deploy.broker_snapshot import complete_first_snapshot
from deploy.certificates import Certificates, ensure_certificates
from deploy.credentials import ensure_credentials
from deploy.errors import DeployError
from deploy.files import private_folder
from deploy.hints import down_command
from deploy.ports import free_port, is_free, require_free
from deploy.processes import LogTail, ManagedProcess, last_error

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
_PORT_ATTEMPTS = 3
_USERS_PORT, _PLATFORM_PORT, _CONTROLLER_PORT = "users.port", "platform.port", "controller.port"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_IN_USE = "Address already in use"
# The variable with more options for the Java of the broker. It is no name of Kafka's own scripts: a
# user may have set that for another Kafka.
_OPTIONS = "SECURE_STREAMS_BROKER_OPTS"


@dataclass(frozen=True)
class BrokerSettings:
    """What an embedded broker needs.

    Attributes:
        state: The deployment's state folder; certificates, passwords, data and logs live there.
        port: Port for users on 127.0.0.1; 0 finds a free one.
        java: The `java` executable, 17 or later.
        jars: Folder of the broker's jars.
        heap_mb: Largest heap, in MB; it says how many connections users may have at once.
        detached: Let the broker outlive the process that starts it.
    """

    state: Path
    port: int
    java: Path
    jars: Path
    heap_mb: int = DEFAULT_HEAP_MB
    detached: bool = False


class EmbeddedBroker:
    """One broker with its data in a state folder; a context manager that starts and stops it.

    Attributes:
        settings: As given.
        certificates: The deployment's CA and server certificates.
        secadmin: Credentials of the platform's administrator, a superuser of this broker.
        ingest: Credentials of the engine that ingests, with no rights until granted.
        query: Credentials of the engines that run queries, likewise.
        process: The broker's process.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        """Make what is missing of certificates and passwords; nothing is started.

        Raises:
            DeployError: The heap is too small.
        """
        self.settings = settings
        try:
            self._memory = RequestMemory(settings.heap_mb)
        except ValueError as error:
            raise DeployError(str(error)) from error
        state = private_folder(settings.state.resolve())
        secrets = private_folder(state / "secrets")
        self.certificates: Certificates = ensure_certificates(state / "certificates")
        self.secadmin = ensure_credentials(secrets, SECADMIN_USER)
        self.ingest = ensure_credentials(secrets, INGEST_USER)
        self.query = ensure_credentials(secrets, QUERY_USER)
        self._own = ensure_credentials(secrets, BROKER_USER)
        self._folder = private_folder(state / "broker")
        self._properties = self._folder / "server.properties"
        # Kafka's own log, beside `broker.log`, which has what the JVM says before there is one.
        self.log = private_folder(state / "logs") / "kafka.log"
        self.process = ManagedProcess("broker", state)
        self._port = settings.port or (self._kept_port(_USERS_PORT) if self.process.mark else 0)

    @property
    def bootstrap(self) -> str:
        """`host:port` for users. With port 0 it is known once the broker has started."""
        return f"localhost:{self._port}"

    @property
    def platform_bootstrap(self) -> str:
        """`host:port` for the platform's own clients; known once the broker has started."""
        return f"localhost:{self._kept_port(_PLATFORM_PORT)}"

    @property
    def port(self) -> int:
        """The users' port; the same again when this object restarts the broker."""
        return self._port

    @property
    def ca_file(self) -> Path:
        """The CA certificate that clients trust."""
        return self.certificates.ca

    @property
    def pid(self) -> int | None:
        """Process id of the running broker, or None."""
        mark = self.process.mark
        return mark.pid if mark else None

    def client_config(self, username: str, password: str) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `username`, as users do."""
        return client_config(self.bootstrap, self.ca_file, username, password)

    def admin_config(self) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `secadmin`, as the platform does."""
        name, password = self.secadmin.username, self.secadmin.password()
        return client_config(self.platform_bootstrap, self.ca_file, name, password)

    def start(self) -> None:
        """Start the broker and return when a client has logged in.

        Raises:
            DeployError: The port is in use, the broker already runs or ended while starting, or
                nobody could log in within `START_TIMEOUT_S` seconds.
        """
        self.process.require_stopped()
        if self._port:
            require_free(self._port, "the broker", "--port")
        attempts = 1 if self._port else _PORT_ATTEMPTS
        while True:
            attempts -= 1
            try:
                self._start_once()
                break
            except _PortTakenError:
                # Between choosing a free port and using it, somebody else was faster.
                if not attempts:
                    raise
                self._port = 0

    def relaunch(self) -> None:
        """Start the broker as it was started last, on the same ports; wait for nothing.

        Raises:
            DeployError: It already runs, or could not be started.
        """
        self.process.start(self._command(), detached=self.settings.detached)

    def wait_for_login(self) -> None:
        """Return when a client has logged in to the broker, which somebody has started.

        Raises:
            DeployError: It ended, or nobody could log in within `START_TIMEOUT_S` seconds.
        """
        self._wait_for_login((LogTail(self.log), LogTail(self.process.log)))

    def require_same_port(self) -> None:
        """Raise DeployError if the running broker has another port than these settings ask for."""
        kept = self._kept_port(_USERS_PORT)
        if self._port != kept:
            raise DeployError(
                f"the broker runs on port {kept}, not on {self._port}: leave out --port, "
                f"or stop everything with `{down_command(self.settings.state)}`"
            )

    def stop(self) -> None:
        """Stop the broker in good order (SIGTERM), or after 20 s with SIGKILL."""
        self.process.stop(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """SIGKILL: what a crash does."""
        self.process.kill()

    def __enter__(self) -> "EmbeddedBroker":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_once(self) -> None:
        self._port = self._port or free_port()
        self._write_properties()
        data = self._folder / "data"
        if not (data / "meta.properties").exists():
            self._format()
        complete_first_snapshot(data)
        logs = LogTail(self.log), LogTail(self.process.log)
        self.process.start(self._command(), detached=self.settings.detached)
        try:
            self._wait_for_login(logs)
        except BaseException:
            self.process.stop(STOP_TIMEOUT_S)
            raise

    def _write_properties(self) -> None:
        files = NodeFiles(
            data=self._folder / "data",
            key_store=self.certificates.broker.key_store,
            ca=self.certificates.ca,
        )
        write_private(self._folder / _USERS_PORT, str(self._port))
        # Each is kept: the voter set remembers the controller's, and who runs the platform's.
        platform = self._free_again(_PLATFORM_PORT, self._port)
        controller = self._free_again(_CONTROLLER_PORT, self._port, platform)
        ports = Ports(self._port, platform, controller)
        properties = broker_properties(ports, files, self._own.password(), self._memory)
        write_private(self._properties, render(properties))

    def _free_again(self, name: str, *taken: int) -> int:
        """The port of the last start, if it is still free, and else another, which is kept."""
        port = self._kept_port(name)
        if port in (0, *taken) or not is_free(port):
            port = free_port(*taken)
            write_private(self._folder / name, str(port))
        return port

    def _kept_port(self, name: str) -> int:
        kept = self._folder / name
        return int(kept.read_text()) if kept.exists() else 0

    def _java(self) -> list[str]:
        return [
            f"-Xmx{self.settings.heap_mb}m",
            "-XX:+UseG1GC",
            "-XX:-UsePerfData",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={_LOG_SETTINGS}",
            f"-Dsecure.streams.log={self.log}",
            *shlex.split(os.environ.get(_OPTIONS, "")),
            "-cp",
            f"{self.settings.jars}/*",
        ]

    def _command(self) -> list[str]:
        return [str(self.settings.java), *self._java(), "kafka.Kafka", str(self._properties)]

    def _format(self) -> None:
        """Prepare the data folder with the platform's SCRAM users already in it.

        The passwords go through an argument file of the java launcher: 0600, gone afterwards.
        """
        users = (self._own, self.secadmin, self.ingest, self.query)
        arguments = [*self._java(), *format_arguments(self._properties, users)]
        file = write_private(self._folder / "format.args", argument_file(arguments))
        try:
            done = subprocess.run(
                [str(self.settings.java), f"@{file}"],
                capture_output=True,
                text=True,
                check=False,
                timeout=START_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeployError(f"the broker's storage could not be formatted: {error}") from error
        finally:
            file.unlink()
        if done.returncode:
            reason = last_error(done.stderr + done.stdout)
            raise DeployError(f"the broker's storage could not be formatted: {reason}")

    def _wait_for_login(self, logs: tuple[LogTail, LogTail]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.mark is None:
                raise self._death(logs)
            # Until the port answers, a client would only log noise and back off.
            if not is_free(self._kept_port(_PLATFORM_PORT)) and can_log_in(self.admin_config()):
                return
            time.sleep(0.05)
        raise DeployError(f"no log-in to the broker within {START_TIMEOUT_S:.0f} s: see {self.log}")

    def _death(self, logs: tuple[LogTail, LogTail]) -> DeployError:
        text = "\n".join(tail.read() for tail in logs)
        if _IN_USE in text:
            return _PortTakenError(
                f"port {self._port} for the broker is in use: stop what listens there, "
                "or choose another with --port"
            )
        return DeployError(f"the broker ended while starting: {last_error(text)} (see {self.log})")


def last_port(state: Path) -> int | None:
    """The users' port of the embedded broker's last start in that folder, if there was one."""
    kept = state / "broker" / _USERS_PORT
    return int(kept.read_text()) if kept.exists() else None


class _PortTakenError(DeployError):
    """Somebody else bound the port first."""
